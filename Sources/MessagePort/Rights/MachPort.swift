// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore
import Synchronization

/// The receive right of a port: a bounded queue of messages, and a handler that runs on a run loop. `NSMachPort`,
/// `MACH_PORT_RIGHT_RECEIVE`.
///
/// Make a port, give it a handler, schedule it on a run loop, and pass ``makeSendRight()`` to the code that should talk
/// to it. A run loop retains a scheduled port; otherwise the port ends when the last reference to this object is
/// released. In an optimized build that may be right after the last use of a variable, not where its scope ends: a port
/// of which only the rights are still used needs a property, `withExtendedLifetime`, or a loop that retains it.
///
/// - Important: Thread safety: any thread. The handler runs on the thread of the run loop.
public final class MachPort: Sendable {
    /// What a port calls for each message: with the port itself, so that the closure need not capture it.
    ///
    /// It cannot throw: reply with an error instead (``MachMessage/replyError(_:_:)``).
    public typealias Handler = @Sendable (MachPort, MachMessage) -> Void

    /// How many messages a port's queue holds unless said otherwise.
    public static let defaultQueueLimit = 64

    /// The largest queue limit: `MACH_PORT_QLIMIT_KERNEL`.
    public static let maximumQueueLimit = 65_534

    struct State {
        /// What gets the messages; nil drops them.
        var receiver: Receiver?
        var coldState: ColdState?
        /// The port's source while it is in a loop, or other code may have it too.
        var binding = HandlerBinding.none
        var source: RunLoopSource? { binding.source }
        /// The generation in `HandlerOwnership` of this source, or of the next.
        var generation: UInt64 = 0
    }

    package let localPort: LocalPort  // immutable
    let state: Mutex<State>  // locked before the source's lock

    /// Makes a port that is reachable within this process; it uses no file descriptor.
    ///
    /// - Parameters:
    ///   - queueLimit: how many messages may wait in the queue, from 1 to ``maximumQueueLimit``; others trap.
    ///   - queuePolicy: what happens to a message for which the queue has no room.
    ///   - handler: called for each message on the loop that the port is scheduled on. Without one, a scheduled port
    ///     drops its messages, as `NSPort` does without a delegate.
    public convenience init(
        queueLimit: Int = MachPort.defaultQueueLimit, queuePolicy: QueuePolicy = .refuse, handler: Handler? = nil
    ) {
        self.init(queueLimit: queueLimit, queuePolicy: queuePolicy, handler: handler, intercept: nil)
    }

    /// The same, for a port that intercepts some of its messages before they are queued.
    init(queueLimit: Int, queuePolicy: QueuePolicy = .refuse, handler: Handler?, intercept: LocalPort.Interceptor?) {
        Self.checkQueueLimit(queueLimit)
        localPort = LocalPort(queueLimit: queueLimit, policy: queuePolicy, intercept: intercept)
        state = Mutex(State(receiver: Receiver(handler)))
    }

    deinit {
        invalidate()
        // A forked child has a copy: if the copy ended, it would remove its parent's sockets.
        if localPort.isInherited { localPort.outliveProcess() }
    }

    /// A right to send to this port; all of them are equal. `MACH_MSG_TYPE_MAKE_SEND`.
    ///
    /// - Returns: the right.
    public func makeSendRight() -> SendRight {
        SendRight(localPort)
    }

    /// A right to send one message to this port, whatever its queue holds. `MACH_MSG_TYPE_MAKE_SEND_ONCE`.
    ///
    /// When the right is dropped unused, the port gets a message with the id ``MachMessage/sendOnceNotification``.
    ///
    /// - Returns: the right.
    public func makeSendOnceRight() -> SendOnceRight {
        let target = ReplyTarget(PortReplyReceiver(localPort))
        _ = target.take()
        return SendOnceRight(taken: target)
    }

    /// Whether the port can receive.
    public var isValid: Bool { !localPort.isDead }

    /// Ends the port: it receives nothing more, leaves every run loop, and is a dead name for all send rights.
    ///
    /// Messages in its queue bounce: a requester that waits for a reply to one gets ``PortError/Code/peerDied``, and
    /// their descriptors close. Idempotent; may be called in the port's own handler.
    ///
    /// The first call does all that before it returns. Any other returns at once: the port is invalid then, but the
    /// bouncing, and the invalidation handler, may still be under way on the thread of the first. It does not wait for
    /// that, because the invalidation handler may itself wait for the other thread.
    public func invalidate() {
        guard localPort.die() else { return }
        let old = state.withLock { state in
            defer { state.binding = .none }
            return (state.replaceReceiver(by: nil, of: nil), state.source)
        }
        localPort.receiverChanges.add(1, ordering: .releasing)
        old.1?.invalidate()
        callInvalidationHandler()
        withExtendedLifetime(old) {}  // released after the invalidation handler was called
    }
}

extension MachPort: Hashable {
    /// Ports are equal when they are the same object.
    public static func == (left: MachPort, right: MachPort) -> Bool { left === right }

    /// Hashes the object's identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension MachPort: CustomStringConvertible {
    /// The port's number in this process and its queue: for people, and of no fixed form.
    public var description: String {
        isValid ? "\(localPort.label) (\(queueCount) of \(queueLimit) messages)" : "\(localPort.label) (invalid)"
    }
}

// MARK: - Receiving

extension RunLoopMode {
    /// The mode in which `receive(within:)` waits: nothing else runs in it.
    static let portReceive = RunLoopMode(rawValue: "PortReceiveMode")
}

extension SourceLabel {
    static let portReceive = SourceLabel("port receive")
}

/// Moves arrivals from the sockets into the queue for a thread that waits in `receive(within:)`.
private struct ReceiveRoutine: SourceRoutine {
    let localPort: LocalPort

    func isReady() -> Bool { localPort.hasMessage }
    func visitPollables(_ body: (any BusyPollable) -> Void) { localPort.visitPollables(body) }

    func perform() -> SourceOutcome {
        localPort.receiveFromSockets()
        return .handled
    }
}

extension MachPort {
    /// Dequeues the oldest message, if there is one now.
    ///
    /// - Returns: the message, or nil.
    /// - Throws: ``PortError/Code/invalidPort`` when the port is invalid; ``PortError/Code/forkedProcess``.
    public func tryReceive() throws(PortError) -> MachMessage? {
        try localPort.checkProcess()
        localPort.willReceiveElsewhere()
        if let message = localPort.receive() { return message }
        if localPort.isDead { throw PortError(.invalidPort).at(localPort.label) }
        return nil
    }

    /// Dequeues the oldest message, waiting for one if necessary. `mach_msg` with `MACH_RCV_TIMEOUT`.
    ///
    /// The port need not be scheduled. The calling thread waits in a private mode of its run loop, in which nothing
    /// else runs. When the port is also scheduled on a loop, each message goes to the first that dequeues it.
    ///
    /// - Parameter limit: how long to wait; zero or less checks once.
    /// - Returns: the message; nil when none came in time.
    /// - Throws: ``PortError/Code/invalidPort`` when the port is or becomes invalid; ``PortError/Code/forkedProcess``;
    ///   ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the port's sockets cannot be
    ///   watched.
    @available(*, noasync, message: "It blocks the thread. Use `messages` to suspend the task instead.")
    public func receive(within limit: Duration) throws(PortError) -> MachMessage? {
        if let message = try tryReceive() { return message }
        if limit <= .zero { return nil }
        let deadline = MonotonicInstant.after(limit)
        let loop = ThreadRunLoop.current
        let source = RunLoopSource(label: .portReceive, routine: ReceiveRoutine(localPort: localPort))
        try localPort.attach(source, to: loop, in: .portReceive)
        defer {
            localPort.detach(source)
            source.invalidate()
        }
        while true {
            if let message = try tryReceive() { return message }
            let result = loop.run(
                mode: .portReceive, until: deadline,
                while: { [localPort] in !localPort.hasMessage && !localPort.isDead })
            if result == .timedOut { return try tryReceive() }
        }
    }
}

// MARK: - Messages

extension MachPort {
    /// The port's messages as an asynchronous sequence.
    ///
    /// ```swift
    /// for try await message in port.messages {
    ///     try message.reply(content: answer(message))
    /// }
    /// ```
    ///
    /// There is no buffer but the port's queue: a message is dequeued when a task asks for the next one, so senders
    /// wait for room as always. The sequence ends when the port is invalidated, at once: messages in the queue bounce
    /// then. It ends for a task that is cancelled, which dequeues nothing: no message is lost. Several tasks may
    /// iterate: each message goes to one of them. The sequence keeps the port alive.
    ///
    /// A task that waits blocks no thread. What comes from other processes is received by one thread, which all waiting
    /// tasks of the process share; it starts when it is first needed.
    public var messages: Messages { Messages(port: self) }

    /// The messages of a port: ``MachPort/messages``.
    public struct Messages: AsyncSequence, Sendable {
        /// The type of its elements.
        public typealias Element = MachMessage
        /// Why it fails: ``PortError/Code/descriptorLimit`` and ``PortError/Code/systemCallFailed`` when the port's
        /// sockets cannot be watched, and the next call tries again; ``PortError/Code/forkedProcess``.
        public typealias Failure = PortError

        let port: MachPort

        /// Starts to iterate: nothing happens before the first call of `next()`.
        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(port: port) }

        /// Dequeues one message after the other.
        public struct AsyncIterator: AsyncIteratorProtocol {
            let port: MachPort

            /// Dequeues the oldest message, suspending the task until there is one.
            ///
            /// - Returns: the message; nil when the port is invalid, or the task was cancelled.
            public mutating func next() async throws(PortError) -> MachMessage? {
                try await port.localPort.receiveForTask()
            }

            /// The same, in the caller's isolation.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(PortError) -> MachMessage? {
                try await port.localPort.receiveForTask()
            }
        }
    }
}

// MARK: - Queue

extension MachPort {
    /// How many messages wait in the queue, or are on their way to it from processes that have asked for room.
    public var queueCount: Int { localPort.withMailbox(or: 0) { $0.depth() } }

    /// How many messages may wait in the queue. `mach_port_limits`.
    public var queueLimit: Int { localPort.withMailbox(or: 0) { $0.limit } }

    /// What happens to a message for which the queue has no room.
    public var queuePolicy: QueuePolicy { localPort.withMailbox(or: .refuse) { $0.policy } }

    /// Changes how many messages may wait in the queue. `mach_port_set_attributes` with `MACH_PORT_LIMITS_INFO`.
    ///
    /// A lower limit drops nothing: what waits stays, and new messages find room once the queue is shorter. A higher
    /// one admits waiting senders, in the order in which they came, before this returns.
    ///
    /// - Parameter limit: how many messages, from 1 to ``maximumQueueLimit``; others trap.
    public func setQueueLimit(_ limit: Int) {
        Self.checkQueueLimit(limit)
        if localPort.isInherited { return }
        localPort.change { $0.setLimit(limit) }
        localPort.shareQueue()
    }

    /// The most messages that have waited in the queue at once, since the port was made or the mark was reset.
    public var queueHighWaterMark: Int { localPort.withMailbox(or: 0) { $0.highWater } }

    /// Sets the high-water mark to the number of messages that wait now.
    ///
    /// - Returns: the mark as it was.
    @discardableResult
    public func resetQueueHighWaterMark() -> Int {
        localPort.withMailbox(or: 0) { $0.resetHighWater() }
    }

    /// How many messages were dropped since the port was made: by the queue's policy, or unread because they were
    /// larger than ``PeerLimits/messageBytes`` and asked for no reply. What the policy drops bounces: its requester
    /// gets ``PortError/Code/messageDropped``, and its descriptors are closed.
    public var droppedMessageCount: Int { localPort.withMailbox(or: 0) { $0.droppedCount } }

    static func checkQueueLimit(_ limit: Int) {
        if !(1...maximumQueueLimit).contains(limit) {
            fatalError("A queue limit of \(limit) is not possible; choose 1 to \(maximumQueueLimit) messages.")
        }
    }
}

// MARK: - Peers

extension MachPort {
    /// Sets which other processes the port talks to; initially ``PeerPolicy/sameUser``.
    ///
    /// It holds for connections that are accepted from now on, so set it before the port is named or a right to it is
    /// sent.
    ///
    /// - Parameter policy: asked once for each connection, before anything is read from it.
    public func setPeerPolicy(_ policy: PeerPolicy) {
        localPort.setPeerPolicy(policy)
    }

    /// Sets what one other process may use at the port; initially ``PeerLimits/standard``.
    ///
    /// It holds for what is received from now on. A lower limit closes and drops nothing.
    ///
    /// - Parameter limits: each at least 1, and ``PeerLimits/messageBytes`` at most ``MessageLimits/payload``; others
    ///   trap.
    public func setPeerLimits(_ limits: PeerLimits) {
        if !limits.isPossible {
            fatalError(
                "These peer limits are not possible: \(limits); choose each at least 1, "
                    + "and messageBytes at most \(MessageLimits.payload).")
        }
        localPort.changePeerRules { PeerConfiguration(policy: $0.policy, limits: limits) }
    }
}

// MARK: - Notices

extension MachPort {
    /// Asks for one notice, on a run loop, when no send right to this port is left. `MACH_NOTIFY_NO_SENDERS`.
    ///
    /// The notice comes when the last send right is released, in this process, every other, and in messages; soon, when
    /// none is left already. A port that never had a sender waits for the first. What the senders sent may still wait in
    /// the queue, and can be read.
    ///
    /// The notice never comes when the port or the loop's thread ends first. Each request is answered once: ask again
    /// for the next time. The names of a port are no senders. A connection is noticed, and its end too, while the
    /// port's messages are received.
    ///
    /// Ask before the first right leaves the process: from then on each that leaves takes a descriptor along, and counts
    /// wherever it is, until its holder has released it or has ended. One that left before counts from its first use,
    /// which is when it connects: sending, a request, a notice, ``SendRight/isDead``.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread.
    /// - Returns: the request, to withdraw it.
    /// - Throws: ``PortError/Code/invalidPort``; ``PortError/Code/forkedProcess``.
    @discardableResult
    public func notifyWhenNoSenders(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) throws(PortError) -> NoticeRequest {
        try localPort.checkProcess()  // before the loop's lock is acquired
        return try NoticeRequest.pending(on: loop, in: mode, { handler() }, localPort.awaitNoSenders)
    }
}

// MARK: - Flushing

extension MachPort {
    /// Waits until no reply of this process waits for room: for a process that is about to end.
    ///
    /// A reply never waits for its requester. A reply for which a requester in another process has not made room is
    /// queued here, and is lost when this process ends, where on the Mac the kernel has the whole reply. After a call
    /// that returns true the kernel has it here, too, or memory shared with the requester, which outlives this process.
    ///
    /// It covers the replies of all ports, also of those that have ended, and what is queued after them, such as the
    /// notice of a port's end. It waits neither for a requester that goes away, nor for a request that was not replied
    /// to. First end what makes new replies: free the name, invalidate the ports. It does not cover a reply to a reply,
    /// to a request that came as the answer of another process: sending it waits for room, and one that is forwarded,
    /// or an error, may be lost.
    ///
    /// ```swift
    /// port.invalidate()
    /// if !MachPort.flushReplies(within: .seconds(5)) { print("a requester does not read its reply") }
    /// exit(0)
    /// ```
    ///
    /// It blocks the thread, and runs no loop: a thread of the library sends. A requester on the same thread does not
    /// read meanwhile. D-Bus has `dbus_connection_flush` for this, ZeroMQ `ZMQ_LINGER`.
    ///
    /// - Parameter limit: how long to wait. Zero or less only checks.
    /// - Returns: whether no reply was waiting at some moment of the call; false when the limit passed first.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    @discardableResult
    public static func flushReplies(within limit: Duration) -> Bool {
        UnflushedReplies.current.waitUntilSent(until: .after(limit))
    }

    /// The same in a task, which blocks no thread while it waits.
    ///
    /// - Parameter limit: how long to wait. Zero or less only checks.
    /// - Returns: as the blocking form; false, too, when the task was cancelled before all was sent.
    @discardableResult
    nonisolated(nonsending) public static func flushReplies(within limit: Duration) async -> Bool {
        let wait = TaskWaiter(until: .after(limit))
        defer { wait.finish() }
        return await UnflushedReplies.current.waitUntilSent(waiting: wait)
    }
}
