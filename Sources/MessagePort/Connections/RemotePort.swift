// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
package import RunLoopCore
import Synchronization

/// A port of another process: the SOCK_SEQPACKET transport. There is one object for each port and process, and it has
/// one connection, however many rights and threads use it. A right that came in a message is not connected before it is
/// used: the sender of an address chooses where it leads, so the receiving thread does nothing about it.
package final class RemotePort: PortEndpoint {
    private struct Waiters: Hashable {
        var loop: ObjectIdentifier
        var mode: RunLoopMode
    }

    package typealias Connect = (PortAddress) throws(PortError) -> ConnectOutcome

    let portAddress: PortAddress  // immutable
    /// Whether there may be a connection.
    enum Phase: Sendable {
        case reachable
        /// There will never be one, and why.
        indirect case failed(PortError)

        var failure: PortError? { if case .failed(let failure) = self { failure } else { nil } }
    }

    let phase = Mutex(Phase.reachable)
    /// The connection: made once, and retained. Set under the lock of `phase`, read without it.
    let made = SetOnceReference<SocketConnection>()
    private let forkGuard = ForkGuard()  // immutable
    /// The ends of pipes that count rights to the port.
    let presence = Mutex(RemotePresence())
    /// How many requests wait in each loop and mode, nested ones included. In the private mode they are not
    /// counted: the source stays there.
    private let waiting = Mutex<[Waiters: Int]>([:])

    package init(_ portAddress: PortAddress, over connection: SocketConnection) {
        self.portAddress = portAddress
        made.set(connection)
    }

    /// Stands for a port that is not connected yet.
    init(_ portAddress: PortAddress) { self.portAddress = portAddress }

    deinit {
        if isInherited { return }
        connection?.retire()
        RightsTable.shared.prune(portAddress)
    }

    package var repliesInMemory: Bool { false }
    package var label: String {
        let process = connection.map { "port of process \($0.peer.processID)" } ?? "port"
        return "\(process) at \(harmlessText(portAddress.path))"
    }

    /// Whether this is a forked child's copy of its parent's object, whose locks it must not touch.
    var isInherited: Bool { forkGuard.isInherited }

    package func checkProcess() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess).at("the port at \(portAddress.path)") }
    }

    package func owner() throws(PortError) -> PeerIdentity {
        let connection = try reached()
        // Perhaps that the port has moved. An end stays unread: until it is read, it says that the process has ended.
        if connection.hasArrival { connection.receiveUnlessReceiving() }
        return connection.peer
    }

    package func address() -> PortAddress { portAddress }

    package func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        guard var message = offered.take() else { return }
        do throws(PortError) {
            // The connection checks by itself whether this is its process, which is also this object's.
            let isSent: Void? = try made.withObject { (connection) throws(PortError) in
                try connection.send(&message, until: deadline)
            }
            if isSent != nil { return (consume message).recycleMemory() }
        } catch {
            try checkProcess()  // says which port it is
            throw error
        }
        var deadline = deadline  // the same for the connection and for room
        let connection = try reached(until: deadline.fix())
        try connection.send(&message, until: deadline)
    }

    nonisolated(nonsending) package func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError)
    {
        try await reached(waiting: wait).send(message, waiting: wait)
    }

    @discardableResult
    package func awaitDeath(_ notice: DeathNotice) throws(PortError) -> Cancellation {
        guard let connection = try reachedUnlessDead() else {
            notice.notify(failure.flatMap { PortEndReason($0) } ?? .unknown)
            return {}
        }
        try connection.awaitDeath(notice)
        return { [weak connection, weak notice] in if let notice { connection?.forgetDeathNotice(notice) } }
    }

    package func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) {
        guard let source = try reached().replySource() else { return }
        if mode == .portReply { return try loop.addOrThrow(source, to: mode) }
        // Counted first: a request that ends meanwhile leaves the source in the loop, or adds it again.
        waiting.withLock { $0[Waiters(loop: ObjectIdentifier(loop), mode: mode), default: 0] += 1 }
        do throws(PortError) {
            try loop.addOrThrow(source, to: mode)
        } catch {
            leave(loop, mode)
            throw error
        }
    }

    package func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {
        if isInherited { return }
        connection?.forget(receiver)
        leave(loop, mode)
    }

    /// Has the I/O thread receive what comes over the connection.
    ///
    /// - Returns: ends this; nil when it cannot.
    func receiveInBackground() -> (() -> Void)? {
        guard let loop = try? IOThread.loop(), (try? beginReplies(on: loop, in: .default)) != nil else { return nil }
        return { if !self.isInherited { self.leave(loop, .default) } }
    }

    /// One request fewer waits in the loop and mode: after the last one the source is removed from them, unless other
    /// code needs it.
    private func leave(_ loop: ThreadRunLoop, _ mode: RunLoopMode) {
        // In the private mode it stays: only requests run there, and the next one saves the system calls.
        if mode == .portReply { return }
        waiting.withLock { waiting in
            let key = Waiters(loop: ObjectIdentifier(loop), mode: mode)
            let count = waiting[key] ?? 0
            waiting[key] = count > 1 ? count - 1 : nil
        }
        guard !isNeeded(on: loop, in: mode), let source = connection?.knownReplySource else { return }
        loop.remove(source, from: mode)
        // A waiter may have come meanwhile, and have found the source in the loop.
        if isNeeded(on: loop, in: mode) { try? loop.addOrThrow(source, to: mode) }
    }

    /// Whether a request or a death notice waits in the loop and mode for what comes over the connection.
    private func isNeeded(on loop: ThreadRunLoop, in mode: RunLoopMode) -> Bool {
        if waiting.withLock({ $0[Waiters(loop: ObjectIdentifier(loop), mode: mode)] != nil }) { return true }
        guard let connection else { return false }
        // Forwarded requests are not counted; the I/O thread awaits their replies.
        if mode == .default, loop == IOThread.startedLoop, connection.awaitsReply { return true }
        return connection.hasDeathNotice(on: loop, in: mode)
    }
}

// MARK: - Connecting

//   not reached ──connected──▶ reached         both final; a full listen backlog, or a lack of descriptors or memory,
//        ╰─────nothing there──▶ failed         leads to neither: the next use tries again
extension RemotePort {
    package var connection: SocketConnection? { made.object }

    /// Why there will never be a connection; nil while there is one, or may be.
    private var failure: PortError? { phase.withLock { $0.failure } }

    package func pollDeath() -> Bool {
        if isInherited { return true }
        return failure != nil || connection?.pollIsDead() == true
    }

    package func isFoundDead() -> Bool {
        if isInherited { return true }
        // A port whose state cannot be determined now is not known to be gone.
        return (try? reachedUnlessDead()).map { $0?.isFoundDead() ?? true } ?? false
    }

    package func reach(until deadline: MonotonicInstant) throws(PortError) -> SendRight? {
        _ = try reached(until: deadline)
        return nil
    }

    nonisolated(nonsending) package func reach(waiting wait: TaskWaiter) async throws(PortError) -> SendRight? {
        _ = try await reached(waiting: wait)
        return nil
    }

    package func knownEndReason() -> PortEndReason {
        if isInherited { return .unknown }
        // The last packet may have the reason.
        if let connection, connection.endReason == nil { connection.receiveUnlessReceiving() }
        return connection?.endReason ?? failure.flatMap { PortEndReason($0) } ?? .unknown
    }

    /// The connection, the same each time; made now if there is none yet. While the port's listen backlog is full this
    /// waits until the deadline. What `connect` does not reach may still be reached without it.
    ///
    /// - Throws: `deadName` when no process listens there; `peerRefused`, `malformedPacket` and `systemCallFailed` when
    ///   none can be reached there; these are final. `sendTimedOut`, `descriptorLimit`; `systemCallFailed` when no
    ///   memory is left.
    func reached(
        until deadline: MonotonicInstant = .distantPast, connecting connect: Connect? = nil
    ) throws(PortError) -> SocketConnection {
        try checkProcess()
        if let known = connection { return known }
        if let failure { throw failure }
        let outcome = Result { () throws(PortError) -> SocketConnection in
            if let connect { return try take(connect(portAddress)) }
            return try take(ProcessEndpoints.connect(toPath: portAddress.path, until: deadline))
        }
        // Of concurrent threads the first decides; the others' connections are released after the unlock. Also when the
        // first has found no listener: with a connection the port would be dead and alive.
        let decided = phase.withLock { phase -> Result<SocketConnection, PortError> in
            if let connection { return .success(connection) }
            if let failure = phase.failure { return .failure(failure) }
            switch outcome {
            case .success(let connection): made.set(connection)
            case .failure(let error): if connect == nil, !error.isTransient { phase = .failed(error) }
            }
            return outcome
        }
        return try decided.get()
    }

    /// As above, in a task, which blocks no thread while it waits.
    nonisolated(nonsending) func reached(waiting wait: TaskWaiter) async throws(PortError) -> SocketConnection {
        while true {
            do throws(PortError) {
                return try reached()
            } catch {
                guard error.code == .sendTimedOut, wait.mayWait else { throw error }
            }
            let timer = RunLoopTimer(after: Tuning.timeUntilRetry) { _ in wait.wake() }
            try IOThread.loop().add(timer)
            defer { timer.invalidate() }
            try await wait.wait()
        }
    }

    /// The connection; nil when there will never be one.
    func reachedUnlessDead() throws(PortError) -> SocketConnection? {
        do throws(PortError) {
            return try reached()
        } catch {
            if error.isTransient { throw error }
            return nil
        }
    }

    private func take(_ outcome: ConnectOutcome) throws(PortError) -> SocketConnection {
        switch outcome {
        case .connected(let socket, let peer):
            return try SocketConnection(socket, port: nil, at: portAddress, peer: peer)
        case .busy: throw PortError(.sendTimedOut, subject: .path(portAddress.path))
        case .dead: throw PortError(.deadName)
        }
    }
}

extension PortError {
    /// Whether the next attempt to connect may succeed.
    fileprivate var isTransient: Bool {
        isOwnShortage || code == .sendTimedOut || code == .forkedProcess
    }
}

// MARK: - Room

extension RemotePort {
    package func awaitRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {
        do throws(PortError) {
            guard let connection = try reachedUnlessDead() else { return notice.notify(.deadName) }
            try connection.awaitRoom(notice, for: self)
        } catch {
            guard error.code == .sendTimedOut else { throw error }
            // The listen backlog is full, and the kernel does not report room in it: a sender that finds none asks
            // again. The timer retains the notice, so no other code has to.
            notice.loop.add(
                RunLoopTimer(after: Tuning.timeUntilRetry) { _ in notice.notify(.possible) }, to: notice.mode)
        }
    }
}
