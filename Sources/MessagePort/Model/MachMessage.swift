// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
public import RunLoopCore

/// A message: an id, a list of components, and the right to reply to it. `NSPortMessage`, `mach_msg_header_t`.
///
/// A message is a value. Sending it leaves the caller's copy as it is, so after a failed send it is intact and can be
/// sent again. Its byte components are shared until one copy changes, never copied on the way within a process. A
/// descriptor component is shared by all copies and closed when the last of them is released.
public struct MachMessage: Sendable {
    /// A part of a message.
    public enum Component: Sendable {
        /// Bytes. Read them in place with `bytes.span`.
        case bytes([UInt8])
        /// A send right: the receiver may send to that port too.
        case right(SendRight)
        /// An open file descriptor: the receiver gets its own, for the same open file.
        case descriptor(SharedDescriptor)
        /// The port itself, with its queue: the receiver of the message may receive from it.
        ///
        /// To another process of the same user it goes with the connections of its clients, when handlers under way have
        /// returned and replies that are owed were sent, if the receiving port accepts that
        /// (``MachPort/setAcceptsReceiveRights(_:)``). Sending waits until the receiver has taken it; the sender's object is
        /// invalid then. Otherwise it throws ``PortError/Code/sendTimedOut`` or ``PortError/Code/notTransferable``, and the
        /// port stays. `Docs/LifeCycle.md` says what becomes of what.
        ///
        /// The message keeps the port alive, not its schedule on a run loop: the receiver moves the port to its own
        /// loop (``MachPort/move(to:in:)``), or receives without a loop after the sender has unscheduled it. A port
        /// that its own queue holds, directly or through others, ends only when it is invalidated.
        case receiveRight(MachPort)
        /// Memory that the receiver reads in place: see ``MemoryPool``. Where it cannot be shared with the receiver, its
        /// bytes are copied on the way, and the receiver has ``MessageMemory/Grade/copied`` memory.
        case memory(MessageMemory)
    }

    /// What the message is about: a number that sender and receiver agree on. `msgid`, `msgh_id`.
    public var id: Int32

    /// Whether it entered its queue through a send-once right: the queue's policy does not see it.
    var cameByReplyRight = false

    /// Whether it shares its envelope with the other messages of a receive batch, and was not dequeued yet.
    private var isQueuedInBatch = false

    var parts: MessageParts

    /// The parts, in the order in which the sender put them.
    public var components: [Component] {
        get { parts.list }
        _modify { yield &parts.list }
    }

    /// The port to which the receiver may reply, as often as it likes; for a check-in, the sender's own port.
    ///
    /// What `NSPortMessage` calls `receivePort` when sending and `sendPort` when receiving: `msgh_local_port` and
    /// `msgh_remote_port`, whose meaning the kernel swaps on the way.
    public var replyPort: SendRight? {
        get { envelope.replyPort }
        set { envelope.replyPort = newValue }
    }

    /// What most messages lack.
    var envelope = MessageEnvelope()

    /// Makes a message of several parts.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - components: its parts; none is fine.
    ///   - replyPort: where the receiver may reply.
    public init(id: Int32 = 0, components: [Component] = [], replyPort: SendRight? = nil) {
        self.id = id
        self.parts = MessageParts(components)
        if let replyPort { self.replyPort = replyPort }
    }

    /// Makes a message of one part, bytes.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - bytes: the bytes; none is fine.
    ///   - replyPort: where the receiver may reply.
    public init(id: Int32 = 0, bytes: [UInt8], replyPort: SendRight? = nil) {
        self.id = id
        self.parts = MessageParts(.bytes(bytes))
        if let replyPort { self.replyPort = replyPort }
    }

    /// Makes a message of one part, memory that is not copied.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - memory: the memory.
    ///   - replyPort: where the receiver may reply.
    public init(id: Int32 = 0, memory: MessageMemory, replyPort: SendRight? = nil) {
        self.id = id
        self.parts = MessageParts(.memory(memory))
        if let replyPort { self.replyPort = replyPort }
    }

    /// Makes a message of one part, a text in UTF-8.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - text: the text.
    ///   - replyPort: where the receiver may reply.
    public init(id: Int32 = 0, text: String, replyPort: SendRight? = nil) {
        self.init(id: id, bytes: Array(text.utf8), replyPort: replyPort)
    }
}

extension MachMessage {
    /// Notes that it was dequeued: the receiver may retain it for any time.
    mutating func noteDequeued() {
        if envelope.isEmpty { return }
        // Returns its charge: its sender's process may send more.
        if isQueuedInBatch {
            isQueuedInBatch = false
            return envelope.leaveBatch()
        }
        envelope.dropCharge()
        replyTarget?.noteRead()
    }

    /// A message of a receive batch, whose messages share an envelope.
    init(ofBatch envelope: MessageEnvelope, id: Int32, _ component: Component) {
        self.id = id
        parts = MessageParts(component)
        self.envelope = envelope
        isQueuedInBatch = true
    }

    var rightCount: Int { parts.rightCount + (replyPort == nil ? 0 : 1) }

    /// The same message as a request, whose reply goes to `receiver`.
    func asking(_ receiver: any ReplyReceiver, confirming confirmation: SendConfirmation? = nil) -> MachMessage {
        var request = self
        request.replyTarget = ReplyTarget(receiver, confirming: confirmation)
        return request
    }

    /// The process at the other end of the connection over which the message came; nil when it came over none.
    package var remoteSender: PeerIdentity? {
        get { envelope.remoteSender }
        set { envelope.remoteSender = newValue }
    }

    /// The right to the one reply that a requester waits for; shared by all copies of the message, and taken once.
    package var replyTarget: ReplyTarget? {
        get { envelope.replyTarget }
        set { envelope.replyTarget = newValue }
    }

    /// The process that sent it: this one, unless it came from another. ``PeerIdentity/openProcess()`` opens it while
    /// the connection lives over which the message came.
    public var sender: PeerIdentity {
        remoteSender ?? .current
    }

    /// The first byte component; empty when there is none.
    public var bytes: [UInt8] {
        for case .bytes(let bytes) in parts { return bytes }
        return []
    }

    /// The first byte component read as UTF-8; what is not UTF-8 becomes U+FFFD.
    public var text: String {
        String(decoding: bytes, as: UTF8.self)
    }

    /// The send rights among the components, in order.
    public var rights: [SendRight] {
        parts.compactMap { if case .right(let right) = $0 { right } else { nil } }
    }

    /// The descriptors among the components, in order.
    public var descriptors: [SharedDescriptor] {
        parts.compactMap { if case .descriptor(let descriptor) = $0 { descriptor } else { nil } }
    }

    /// The receive rights among the components, in order.
    public var receiveRights: [MachPort] {
        parts.compactMap { if case .receiveRight(let port) = $0 { port } else { nil } }
    }

    /// The memory among the components, in order.
    public var memory: [MessageMemory] {
        if let memory = parts.onlyMemory { return [memory] }
        return parts.compactMap { if case .memory(let memory) = $0 { memory } else { nil } }
    }

    /// Whether a requester waits for a reply and none was sent yet.
    public var expectsReply: Bool {
        replyTarget?.allowsReply ?? false
    }

    /// Takes the right to the one reply out of the message and all its copies, for a reply at a later time.
    ///
    /// - Returns: the right; nil when no reply is expected, or the right was taken before.
    public func takeReplyRight() -> SendOnceRight? {
        guard let target = replyTarget, target.allowsReply, target.take() else { return nil }
        return SendOnceRight(taken: target)
    }

    /// Lets the receiver of this message reply, once, to the requester that waits at the right's port.
    ///
    /// - Parameter right: a right made by ``MachPort/makeSendOnceRight()``, or taken out of another message in order to
    ///   forward its request. It moves into the message; when the message is never delivered or never replied to, the
    ///   right's maker is notified.
    public mutating func setReplyRight(_ right: consuming SendOnceRight) {
        replyTarget = right.release()
    }

    /// Replies to the requester that waits for this message's answer. Never waits for a requester that reads slowly or
    /// not at all: see ``SendOnceRight/send(_:within:)``.
    ///
    /// - Parameters:
    ///   - message: the reply.
    ///   - limit: how long to wait for room, where the reply is to a reply of another process.
    /// - Throws: ``PortError/Code/noReplyRight`` when no reply is expected or one was sent; the errors of
    ///   ``SendOnceRight/send(_:within:)``.
    public func reply(_ message: MachMessage, within limit: Duration = SendOnceRight.defaultLimit) throws(PortError) {
        guard let right = takeReplyRight() else { throw PortError(.noReplyRight) }
        try right.send(message, within: limit)
    }
}

// MARK: - Replies

extension MachMessage {
    /// Replies with an error: the requester's call throws ``PortError/Code/remoteError`` with this code and text. It
    /// never waits, and is distinct from an empty reply.
    ///
    /// - Parameters:
    ///   - code: a number that both sides agree on.
    ///   - text: what happened, for people; truncated to ``PortError/remoteTextLimit`` bytes.
    /// - Throws: ``PortError/Code/noReplyRight`` when no reply is expected or one was sent.
    public func replyError(_ code: Int32, _ text: String = "") throws(PortError) {
        guard let right = takeReplyRight() else { throw PortError(.noReplyRight) }
        right.fail(code, text)
    }

    /// Replies with a value as the bytes of a message.
    ///
    /// - Parameters:
    ///   - content: the value.
    ///   - limit: how long to wait for room, where the reply is to a reply of another process.
    /// - Throws: as ``reply(_:within:)``.
    public func reply<Content: MessageContent>(
        content: Content, within limit: Duration = SendOnceRight.defaultLimit
    ) throws(PortError) {
        try reply(MachMessage(id: id, content: content), within: limit)
    }

    /// Whether the requester no longer waits for the reply: its task was cancelled, its time is up, or it is gone. Then
    /// a reply would be dropped, and work for it is wasted.
    ///
    /// False when no reply is expected, one was sent, or the reply right was taken: then ask the right. For a requester
    /// in another process this reads what has arrived from it, as far as the port's queue has room.
    public var isCancelled: Bool {
        guard let replyTarget, replyTarget.allowsReply else { return false }
        return replyTarget.pollAbandonment()
    }

    /// Asks for one notice, on a run loop, when the requester no longer waits for the reply.
    ///
    /// The end of a requester in another process is learned when the port receives: while the port's loop runs, a
    /// thread or task receives from it, or a call reads ``isCancelled``. The handler stays with the reply right when
    /// that is taken out of the message, until the right is used or put into another message.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread, soon when the requester no longer waits; never after the reply.
    ///     It should not hold the message.
    public func setCancellationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) {
        guard let replyTarget, replyTarget.allowsReply else { return }
        replyTarget.awaitAbandonment(DeathNotice(loop: loop, mode: mode) { _ in handler() })
    }

    /// Asks for one notice, on the current thread's run loop, when the requester no longer waits for the reply.
    ///
    /// See ``setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread. It should not hold the message.
    @available(*, noasync, message: "A task has no thread of its own: use `setCancellationHandler(on:)`.")
    public func setCancellationHandler(in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void) {
        setCancellationHandler(on: .current, in: mode, handler)
    }
}

// MARK: - Bytes

extension MachMessage {
    /// How many byte components there are.
    public var byteComponentCount: Int {
        parts.count { if case .bytes = $0 { true } else { false } }
    }

    /// Reads a byte component in place, without a copy.
    ///
    /// - Parameters:
    ///   - index: which of the byte components, from 0; others are not counted.
    ///   - body: reads the bytes, which are valid while it runs. Gets an empty span when there is no such component.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw.
    public func withBytes<Success: ~Copyable, Failure: Error>(
        at index: Int = 0, _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success {
        let bytes = byteComponent(at: index) ?? []
        // SAFETY: the raw view of a span is unsafe for types with padding; bytes have none.
        return try unsafe body(bytes.span.bytes)
    }

    /// Makes a message of one part, bytes that are written in place, without a copy.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - capacity: the room in bytes, 0 or more; fewer may be written, more trap.
    ///   - replyPort: where the receiver may reply.
    ///   - initializer: writes the bytes.
    /// - Throws: what the initializer threw.
    @inlinable public init<Failure: Error>(
        id: Int32 = 0, byteCapacity capacity: Int, replyPort: SendRight? = nil,
        initializingWith initializer: (inout OutputSpan<UInt8>) throws(Failure) -> Void
    ) throws(Failure) {
        if capacity < 0 { fatalError("A capacity of \(capacity) bytes is not possible; choose 0 or more.") }
        // The error is passed in a variable, and room is reserved first, so that the list is made by code specialised
        // for lists of bytes, not by generic code.
        var failure: Failure?
        var bytes = makeRoom(forBytes: capacity)
        if capacity == 0 {
            // The empty list is shared by all, and would be written.
            var none = OutputSpan<UInt8>()
            try initializer(&none)
        } else if bytes.isEmpty {
            bytes.append(addingCapacity: capacity) { span in
                do throws(Failure) { try initializer(&span) } catch { failure = error }
            }
        } else {
            let count = unsafe bytes.withUnsafeMutableBufferPointer { buffer in
                var span = unsafe OutputSpan(buffer: buffer, initializedCount: 0)
                do throws(Failure) { try initializer(&span) } catch { failure = error }
                return unsafe span.finalize(for: buffer)
            }
            if count < bytes.count { bytes.removeLast(bytes.count - count) }
        }
        if let failure { throw failure }
        self.init(id: id, bytes: bytes, replyPort: replyPort)
    }

    /// Recycles the message's memory: its bytes, for another message.
    consuming func recycleMemory() { parts.recycleMemory() }

    private func byteComponent(at index: Int) -> [UInt8]? {
        var left = index
        for case .bytes(let bytes) in parts {
            if left == 0 { return bytes }
            left -= 1
        }
        return nil
    }
}

/// A list for `count` bytes: a small one has that many, to be overwritten; a larger one is empty, with room for them.
@usableFromInline func makeRoom(forBytes count: Int) -> [UInt8] {
    if count > 0, count <= BufferPool.capacity { return BufferPool.take(count) }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    return bytes
}

// MARK: - Description

extension MachMessage: CustomStringConvertible {
    /// The id, the parts, and whether a reply is expected: for people, and of no fixed form.
    public var description: String {
        var parts = components.prefix(Self.shownComponents).map(\.description)
        if components.count > parts.count { parts.append("\(components.count - parts.count) more") }
        var text = "message \(id) [\(parts.joined(separator: ", "))]"
        if let replyPort { text += ", reply port: \(replyPort)" }
        if expectsReply { text += ", expects a reply" }
        if let remoteSender { text += ", from process \(remoteSender.processID)" }
        return text
    }

    private static var shownComponents: Int { 8 }
}
