// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
package import RunLoopCore
import Synchronization

/// A port of another process: the SOCK_SEQPACKET transport. There is one object for each port and process, and it has one
/// connection, however many rights and threads use it.
package final class RemotePort: PortDestination {
    private struct Waiters: Hashable {
        var loop: ObjectIdentifier
        var mode: RunLoopMode
    }

    private let portAddress: PortAddress  // immutable
    package let connection: SocketConnection  // immutable
    /// How many requests wait in each loop and mode, nested ones included.
    private let waiting = Mutex<[Waiters: Int]>([:])

    /// Takes over a connection to the port.
    package init(_ portAddress: PortAddress, over connection: SocketConnection) {
        self.portAddress = portAddress
        self.connection = connection
    }

    deinit {
        if connection.isInherited { return }
        connection.retire()
        RightsTable.shared.prune(portAddress)
    }

    package var repliesInMemory: Bool { false }
    package var label: String { "port of process \(connection.peer.processID) at \(portAddress.path)" }
    package var isDead: Bool { connection.isInherited || connection.isDeadName }

    package func checkProcess() throws(PortError) { try connection.checkProcess() }

    package func address() -> PortAddress { portAddress }

    package func send(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        try connection.checkProcess()
        try connection.send(message, until: deadline)
    }

    @discardableResult
    package func watchDeath(_ watcher: DeathWatcher) throws(PortError) -> Withdrawal {
        try connection.checkProcess()
        try connection.watchDeath(watcher)
        return { [weak connection, mark = watcher.mark] in connection?.forgetWatcher(mark) }
    }

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) {
        try connection.checkProcess()
        guard let source = try connection.replySource() else { return }
        try loop.addOrThrow(source, to: mode)
        waiting.withLock { $0[Waiters(loop: ObjectIdentifier(loop), mode: mode), default: 0] += 1 }
    }

    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {
        connection.forget(receiver)
        let isLast = waiting.withLock { waiting in
            let key = Waiters(loop: ObjectIdentifier(loop), mode: mode)
            guard let count = waiting[key], count > 1 else {
                waiting[key] = nil
                return true
            }
            waiting[key] = count - 1
            return false
        }
        // In the private mode it may stay: nothing but requests runs there, and the next one saves the system calls.
        // Who watches for the port's end needs it too.
        guard isLast, mode != .portReply, !connection.hasWatcher(on: loop, in: mode),
            let source = connection.state.withLock({ $0.source })
        else { return }
        loop.remove(source, from: mode)
        // Somebody may have begun to watch meanwhile, and have found the source in the loop.
        if connection.hasWatcher(on: loop, in: mode) { try? loop.addOrThrow(source, to: mode) }
    }
}
