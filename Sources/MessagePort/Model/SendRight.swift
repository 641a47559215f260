// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore

/// The right to send to a port, wherever the port is: in this thread, another thread, or another process.
///
/// Rights are values. All rights of a process to one port are equal, whichever way they came, also when the port died
/// on the way; they can be keys of a dictionary. Two kinds are equal to their copies only: the result of
/// ``bootstrap()`` when another right to that port came before the first call, and what arrives of a right to a port of
/// the sender that had ended. A right does not keep its port alive; when the port is gone it is a dead name.
///
/// - Important: Thread safety: any thread.
public struct SendRight: Hashable, Sendable {
    package let destination: any PortEndpoint
    /// What the right's port counts: copies of the right share it, and when the last of them is released, the port is
    /// notified. For a port of another process the end of a pipe, if one came with the right.
    private let presence: (any SenderPresence)?

    /// A right that came in a message may have come with the end of a pipe.
    package init(_ destination: any PortEndpoint, with end: ReceivedEnd? = nil) {
        self.destination = destination
        presence = destination.makePresence(with: end)
    }

    /// The end of a pipe that travels with the right to another process; nil when its port does not count rights that
    /// way.
    func export() throws(PortError) -> SharedDescriptor? { try destination.export(presence) }

    /// What distinguishes the end that will travel with it from others to its port, once that is announced; nil when none
    /// will.
    var endIdentity: ObjectIdentifier? {
        if let end = presence as? SharedDescriptor { return ObjectIdentifier(end) }
        return destination.exportsEnds ? ObjectIdentifier(destination) : nil
    }

    /// Whether the end of a pipe came with it.
    var hasEnd: Bool { presence is SharedDescriptor }

    /// Rights are equal when they name the same port.
    public static func == (left: SendRight, right: SendRight) -> Bool {
        left.destination === right.destination
    }

    /// Hashes the port's identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(destination))
    }

    /// Whether the port is gone. A right that came in a message of another process, and was not used yet, connects;
    /// where it cannot connect now, the port is not known to be gone. For a port of another process this asks the
    /// kernel; it is cheap, but it is a system call. Unread data on the connection is read first: it may report the
    /// end.
    public var isDead: Bool { destination.isFoundDead() }

    /// Determines the process that owns the port: this one, or the one at the other end of the connection, as the kernel
    /// noted it. ``PeerIdentity/openProcess()`` opens it while the connection lives, which it does while there is a
    /// right here.
    ///
    /// A right that came in a message, and was not used yet, connects. That does not wait. Once it is known it stays
    /// known, also when the port is gone.
    ///
    /// The kernel names the process that began to listen at the port's socket. For a name that a supervisor declared
    /// (`PortNameServer.checkIn`) that is the supervisor, whichever process has checked in; the `sender` of a reply is
    /// the same.
    ///
    /// - Returns: its identity.
    /// - Throws: ``PortError/Code/deadName`` when the port was gone before this process had connected to it;
    ///   ``PortError/Code/peerRefused``, ``PortError/Code/sendTimedOut`` when too many wait to be accepted,
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``; ``PortError/Code/forkedProcess``.
    public func owner() throws(PortError) -> PeerIdentity {
        do throws(PortError) {
            return try destination.owner()
        } catch {
            throw destination.naming(error)
        }
    }

    /// Sends a message, waiting while the port's queue is full.
    ///
    /// Messages of one thread over one right arrive in the order in which they were sent. Returning means that the
    /// message is in the port's queue (or, for another process, in the kernel on its way there, where it survives this
    /// process).
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: ``PortError/Code/deadName`` when the port is gone, ``PortError/Code/sendTimedOut`` when there was no
    ///   room, ``PortError/Code/messageTooLarge``, ``PortError/Code/tooManyDescriptors``,
    ///   ``PortError/Code/peerRefused`` when the other process does not talk to this one,
    ///   ``PortError/Code/invalidPort`` when the message goes to another process and hands on a reply right for whose
    ///   reply this process has no live port; ``PortError/Code/descriptorsInFlight``,
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``. Nothing was delivered then.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func send(_ message: consuming MachMessage, within limit: Duration) throws(PortError) {
        do throws(PortError) {
            var offered: MachMessage? = consume message
            try destination.send(&offered, until: .after(limit))
        } catch {
            throw destination.naming(error)
        }
    }

    /// Sends a message and suspends the task while the port's queue is full.
    ///
    /// Otherwise as the blocking form: messages of one task over one right arrive in the order in which they were sent.
    /// A task that is cancelled before the call sends nothing; the asynchronous `request` documents how soon a
    /// cancellation ends the wait for room. ``trySend(_:)`` never waits, so it needs no such form.
    ///
    /// - Parameters:
    ///   - message: the message. It stays the caller's; after an error it can be sent again.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``. Nothing was delivered then.
    nonisolated(nonsending) public func send(_ message: MachMessage, within limit: Duration) async throws(PortError) {
        if Task.isCancelled { throw PortError(.cancelled, delivery: .notSent) }
        let sending = TaskWaiter(until: .after(limit))
        defer { sending.finish() }
        do throws(PortError) {
            try await destination.send(message, waiting: sending)
        } catch {
            throw destination.naming(error)
        }
    }

    /// Sends a message if there is room now.
    ///
    /// Room means the same wherever the port lives: its queue takes another message. A port of another process grants
    /// its free slots to its clients, so mostly that is known without a call. Otherwise the port is asked, and a thread
    /// of its process answers within moments, also while the port's owner is busy; that thread also receives a message
    /// that is larger than the kernel's buffer. When no answer comes within 250 ms, because the process is stopped or
    /// the program decides itself about each client, the message is sent if the connection has room for all of it.
    /// Several processes that send at once may exceed the queue's limit by one message each.
    ///
    /// Senders of one connection send one at a time. This call waits for a sender that is sending, which soon ends. It
    /// does not wait for one that waits for room, or for a task that holds the send lock and has no thread yet: then no
    /// room is known, and the answer is false, though the queue may have some.
    ///
    /// A message to another process may contain a right to a port of a third one that this process has found by its name.
    /// Before the first time that port is notified that its right is passed on. Without room in the connection to it the
    /// answer is false, too.
    ///
    /// - Parameter message: the message. It stays the caller's.
    /// - Returns: false when the queue is full, a task holds the send lock, or a port in the message cannot be
    ///   notified; nothing was sent then.
    /// - Throws: as `send(_:within:)`, except `sendTimedOut`.
    public func trySend(_ message: consuming MachMessage) throws(PortError) -> Bool {
        do throws(PortError) {
            try destination.send(message, until: .never)
            return true
        } catch {
            if error.code == .sendTimedOut { return false }
            throw destination.naming(error)
        }
    }

    /// Asks for one notice, on a run loop, when the port is gone. `MACH_NOTIFY_DEAD_NAME`.
    ///
    /// A remote port's end is noticed while the loop runs in the mode. When the connection ends without a reason, the
    /// notice waits until the owner's process has ended, at most 100 ms.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread with the reason; soon when the port is gone already.
    /// - Returns: the request, to withdraw it.
    /// - Throws: ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``;
    ///   ``PortError/Code/sendTimedOut`` for the first use of a right that came in a message, when too many wait to be
    ///   accepted: no notice comes then.
    @discardableResult
    public func notifyWhenDead(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common,
        _ handler: @escaping @Sendable (PortEndReason) -> Void
    ) throws(PortError) -> NoticeRequest {
        let request = NoticeRequest()
        let notice = DeathNotice(loop: loop, mode: mode) { if request.begin() { handler($0) } }
        request.setCancellation(try destination.awaitDeath(notice))
        return request
    }

    /// Asks for one notice, on a run loop, when a message may be sent: for use after ``trySend(_:)`` found the queue
    /// full. `MACH_NOTIFY_SEND_POSSIBLE`.
    ///
    /// Each request is answered exactly once: soon when there is room already, and when the port is gone. It is dropped
    /// when the loop's thread ends. It reserves no slot: when several wait for room, all are notified, and one that
    /// finds the queue full again asks again. While the notice of a port of another process waits, it uses two
    /// descriptors, and retains the connection.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``: no notice comes then.
    @discardableResult
    public func notifyWhenSendPossible(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common,
        _ handler: @escaping @Sendable (SendPossibility) -> Void
    ) throws(PortError) -> NoticeRequest {
        try destination.checkProcess()  // before the loop's lock is acquired
        return try NoticeRequest.pending(on: loop, in: mode, handler, destination.awaitRoom)
    }
}

// For code that has a thread of its own: the loop is that thread's. A task names a loop.
extension SendRight {
    /// Asks for one notice, on the current thread's run loop, when the port is gone. See ``notifyWhenDead(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread with the reason; soon when the port is gone already.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenDead(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenDead(on:)`.")
    @discardableResult
    public func notifyWhenDead(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (PortEndReason) -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenDead(on: .current, in: mode, handler)
    }

    /// Asks for one notice, on the current thread's run loop, when there is room. See
    /// ``notifyWhenSendPossible(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: as ``notifyWhenSendPossible(on:in:_:)``.
    @available(*, noasync, message: "A task has no thread of its own: use `notifyWhenSendPossible(on:)`.")
    @discardableResult
    public func notifyWhenSendPossible(
        in mode: RunLoopMode = .common, _ handler: @escaping @Sendable (SendPossibility) -> Void
    ) throws(PortError) -> NoticeRequest {
        try notifyWhenSendPossible(on: .current, in: mode, handler)
    }
}

extension SendRight: CustomStringConvertible {
    /// Which port it leads to, and whether that is gone: for people, and of no fixed form.
    ///
    /// For a port of another process this asks the kernel whether it is gone.
    public var description: String {
        "right to \(destination.label)" + (destination.pollDeath() ? " (dead)" : "")
    }
}
