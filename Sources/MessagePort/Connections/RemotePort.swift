// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import RunLoopCore
import Synchronization

/// A port of another process: the SOCK_SEQPACKET transport. There is one object for each port and process, and it has
/// one connection, however many rights and threads use it. A right that came in a message has none before it is used:
/// whoever sends an address decides where it leads, so nothing is done about it on the thread that receives.
package final class RemotePort: PortEndpoint {
    struct Link {
        /// Why there will never be a connection.
        var failure: PortError?
    }

    private struct Waiters: Hashable {
        var loop: ObjectIdentifier
        var mode: RunLoopMode
    }

    let portAddress: PortAddress  // immutable
    let link = Mutex(Link())
    /// The connection: made once, and kept. Set under the lock of `link`; to read it needs none.
    let made = SetOnceReference<SocketConnection>()
    private let forkCount = sysForkCount()  // immutable
    /// How many requests wait in each loop and mode, nested ones included.
    private let waiting = Mutex<[Waiters: Int]>([:])

    /// Takes over a connection to the port.
    package init(_ portAddress: PortAddress, over connection: SocketConnection) {
        self.portAddress = portAddress
        made.set(connection)
    }

    /// Stands for a port that nobody has looked for yet.
    init(_ portAddress: PortAddress) {
        self.portAddress = portAddress
    }

    deinit {
        if isInherited { return }
        connection?.retire()
        RightsTable.shared.prune(portAddress)
    }

    package var repliesInMemory: Bool { false }
    package var label: String {
        let process = connection.map { "port of process \($0.peer.processID)" } ?? "port"
        return "\(process) at \(portAddress.path)"
    }

    /// Whether this is a forked child's copy of its parent's object, whose locks it must not touch.
    var isInherited: Bool { sysForkCount() != forkCount }

    package func checkProcess() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess).at("the port at \(portAddress.path)") }
    }

    package func address() -> PortAddress { portAddress }

    package func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        guard var message = offered.take() else { return }
        do throws(PortError) {
            if try sendPlain(&message, until: deadline) { return }
            // It is of the same process as this object, and looks itself whether that is this one.
            let isSent: Void? = try made.withObject { (connection) throws(PortError) in
                try connection.send(message, until: deadline)
            }
            if isSent != nil { return (consume message).leaveMemory() }
        } catch {
            try checkProcess()  // says which port it is
            throw error
        }
        var deadline = deadline  // one, for the connection and for room
        let connection = try reached(until: deadline.fix())
        try connection.send(message, until: deadline)
    }

    /// Sends a message that is bytes alone, and wants no answer, if there is a connection and nobody is in the way. The bytes
    /// are taken out of the message meanwhile: so they are not retained, and are left to other messages then.
    ///
    /// - Returns: whether it was sent; if not, the message is as it was.
    private func sendPlain(_ message: inout MachMessage, until deadline: SendDeadline) throws(PortError) -> Bool {
        guard !message.envelope.hasReplyRight, let bytes = message.parts.takeOnlyBytes() else { return false }
        let id = message.id
        let isSent = try made.withObject { (connection) throws(PortError) in
            try connection.checkProcess()
            return try connection.sender.sendPlain(bytes, id: id, answering: 0, until: deadline, over: connection)
        }
        if isSent == true {
            BufferPool.leave(consume bytes)
            return true
        }
        message.parts = MessageParts(.bytes(bytes))
        return false
    }

    nonisolated(nonsending) package func send(_ message: MachMessage, waiting wait: SendWait) async throws(PortError) {
        try await reached(waiting: wait).send(message, waiting: wait)
    }

    @discardableResult
    package func watchDeath(_ watcher: DeathWatcher) throws(PortError) -> Withdrawal {
        guard let connection = try reachedUnlessDead() else {
            watcher.tell()
            return {}
        }
        try connection.watchDeath(watcher)
        return { [weak connection, mark = watcher.mark] in connection?.forgetWatcher(mark) }
    }

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) {
        guard let source = try reached().replySource() else { return }
        // Counted first: a request that ends meanwhile leaves the source in the loop, or puts it back.
        waiting.withLock { $0[Waiters(loop: ObjectIdentifier(loop), mode: mode), default: 0] += 1 }
        do throws(PortError) {
            try loop.addOrThrow(source, to: mode)
        } catch {
            leave(loop, mode)
            throw error
        }
    }

    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {
        connection?.forget(receiver)
        leave(loop, mode)
    }

    /// One request fewer waits in the loop and mode: after the last the source leaves them, unless somebody else needs
    /// it.
    private func leave(_ loop: ThreadRunLoop, _ mode: RunLoopMode) {
        waiting.withLock { waiting in
            let key = Waiters(loop: ObjectIdentifier(loop), mode: mode)
            let count = waiting[key] ?? 0
            waiting[key] = count > 1 ? count - 1 : nil
        }
        // In the private mode it may stay: nothing but requests runs there, and the next one saves the system calls.
        guard mode != .portReply, !isNeeded(on: loop, in: mode),
            let source = connection?.state.withLock({ $0.source })
        else { return }
        loop.remove(source, from: mode)
        // Somebody may have come meanwhile, and have found the source in the loop.
        if isNeeded(on: loop, in: mode) { try? loop.addOrThrow(source, to: mode) }
    }

    /// Whether somebody waits in the loop and mode for what comes over the connection.
    private func isNeeded(on loop: ThreadRunLoop, in mode: RunLoopMode) -> Bool {
        if waiting.withLock({ $0[Waiters(loop: ObjectIdentifier(loop), mode: mode)] != nil }) { return true }
        guard let connection else { return false }
        // Requests that were handed on are not counted; the shared thread listens for their replies.
        if mode == .default, loop == IOThread.startedLoop, connection.awaitsReply { return true }
        return connection.hasWatcher(on: loop, in: mode)
    }
}
