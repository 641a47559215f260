// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import RunLoopCore
import Synchronization

/// Finds out why a connection has ended without a reason, and then delivers the notices of the port's end. A process
/// that ends closes its files just before it has ended; so the I/O thread waits for a moment. Meanwhile another thread
/// may read the reason: the last packet.
final class PeerEndWatch: Sendable {
    private struct State: Sendable {
        var notices: [DeathNotice]
        var key: UInt64?
        var timer: RunLoopTimer?
    }

    private let process: SharedDescriptor  // immutable
    private weak let connection: SocketConnection?  // immutable
    private let state: Mutex<State>

    private init(_ process: SharedDescriptor, of connection: SocketConnection, _ notices: [DeathNotice]) {
        (self.process, self.connection) = (process, connection)
        state = Mutex(State(notices: notices))
    }

    /// Delivers notices: at once when the reason is known, or when the process at the other end of the connection has
    /// ended, or cannot be opened; otherwise soon.
    static func deliver(_ notices: [DeathNotice], of connection: SocketConnection) {
        if notices.isEmpty { return }
        defer { Callouts.drop(notices) }
        var reason = connection.endReason
        // The kernel knows the first owner by the socket, and no later one.
        if reason == nil, connection.newOwner.object == nil {
            do throws(SystemError) {
                let process = SharedDescriptor(try sysPeerProcess(connection.descriptor.rawValue))
                reason = try sysEnd(openedAs: process.rawValue).map { PortEndReason($0) }
                if reason == nil, (try? PeerEndWatch(process, of: connection, notices).begin()) != nil { return }
            } catch {
                if error.code == ESRCH { reason = .processEnded }
            }
        }
        reason = connection.noteEnd(reason)
        for notice in notices { notice.notify(reason ?? .unknown) }
    }

    private func begin() throws(PortError) {
        let (loop, watches) = (try IOThread.loop(), try IOThread.arrivals())
        let timer = RunLoopTimer(after: Tuning.processEndTime) { _ in self.end() }
        let key = try PortError.converting(watches.add(process.rawValue, .readable, once: true) { self.end() })
        let isOver = state.withLock { state in
            if !state.notices.isEmpty { (state.key, state.timer) = (key, timer) }
            return state.notices.isEmpty
        }
        if !isOver { loop.add(timer) }
    }

    /// The process has ended, or the time is up.
    private func end() {
        let old = state.withLock { state in
            let old = state
            state = State(notices: [])
            return old
        }
        old.timer?.invalidate()
        if let key = old.key { try? IOThread.arrivals().remove(key) }
        let end = (try? sysEnd(openedAs: process.rawValue)).map { PortEndReason($0) }
        let reason = if let connection { connection.noteEnd(end) } else { end }
        for notice in old.notices { notice.notify(reason ?? .unknown) }
    }
}
