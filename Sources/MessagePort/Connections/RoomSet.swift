// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// The connections of this process on which something is overdue, until there is room for it: one set for all of them, so that
/// a peer that does not read takes no descriptor for each of its connections.
package final class RoomSet: Sendable {
    private struct State {
        var lastKey: UInt64 = 0
        var waiting: [UInt64: SocketConnection] = [:]
    }

    private let set: EpollSet  // immutable
    private let state = Mutex(State())

    /// Makes one that a loop watches from now on.
    init(watchedOn loop: ThreadRunLoop) throws(PortError) {
        do throws(SystemError) {
            set = try EpollSet()
        } catch {
            throw PortError(error)
        }
        let source = RunLoopSource(
            name: "port room", keepsModeAlive: false, routine: Routine(rooms: self))
        try loop.addOrThrow(source, to: .default)
        do throws(SystemError) {
            try source.watch(pollable: set.raw)
        } catch {
            source.invalidate()
            throw PortError(error)
        }
    }

    /// Has a connection send what is overdue when its socket says that there is room, or that the peer is gone. It is kept until
    /// then.
    ///
    /// - Throws: `ENOSPC`, `ENOMEM`: nobody waits then.
    func wait(for connection: SocketConnection) throws(SystemError) {
        // The end of a port closes its connections for receiving, which would look like the peer's end there.
        let events: EpollEvents = connection.port == nil ? [.writable, .peerClosed] : .writable
        try state.withLock { (state) throws(SystemError) in
            state.lastKey += 1
            try set.add(connection.descriptor.rawValue, events, key: state.lastKey)
            state.waiting[state.lastKey] = connection
        }
    }

    fileprivate func notify() {
        for report in set.wait(until: .distantPast) {
            guard let connection = state.withLock({ $0.waiting.removeValue(forKey: report.key) }) else {
                continue
            }
            // Until it is told, the connection does not come back.
            set.remove(connection.descriptor.rawValue)
            connection.roomDidCome()
        }
    }
}

/// Tells the connections for which there is room.
private struct Routine: SourceRoutine {
    let rooms: RoomSet

    func perform() -> SourceOutcome {
        rooms.notify()
        return .handled
    }
}
