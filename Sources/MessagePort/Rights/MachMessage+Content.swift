// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore

extension MachMessage {
    /// Makes a message of one part, the bytes of a value.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - content: the value.
    ///   - replyPort: where the receiver may reply.
    public init<Content: MessageContent>(id: Int32 = 0, content: Content, replyPort: SendRight? = nil) {
        var writer = MessageWriter()
        writer.write(content)
        self.init(id: id, bytes: writer.bytes, replyPort: replyPort)
    }

    /// The value that the first byte component holds.
    ///
    /// - Parameter type: what it is.
    /// - Returns: the value.
    /// - Throws: ``PortError/Code/malformedContent`` when the bytes are not such a value, or more bytes follow it.
    public func content<Content: MessageContent>(as type: Content.Type = Content.self) throws(PortError) -> Content {
        var reader = MessageReader(bytes)
        let content: Content = try reader.read()
        try reader.finish()
        return content
    }
}

extension SendRight {
    /// Sends a value as a message of one part, waiting while the port's queue is full.
    ///
    /// - Parameters:
    ///   - content: the value.
    ///   - id: what the message is about.
    ///   - limit: how long to wait for room. Zero or less never waits, but still sends when there is room.
    /// - Throws: as `send(_:within:)`.
    public func send<Content: MessageContent>(_ content: Content, id: Int32 = 0, within limit: Duration)
        throws(PortError)
    {
        try send(MachMessage(id: id, content: content), within: limit)
    }

    /// Sends a value and waits for the one reply, a value too.
    ///
    /// - Parameters:
    ///   - content: the value to send.
    ///   - reply: what the reply is.
    ///   - id: what the message is about.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    ///   - mode: the mode to run the current loop in.
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:mode:)``; ``PortError/Code/malformedContent`` when the reply is
    ///   not such a value.
    public func request<Content: MessageContent, Reply: MessageContent>(
        _ content: Content, as reply: Reply.Type = Reply.self, id: Int32 = 0, sendLimit: Duration = .seconds(10),
        replyLimit: Duration = .seconds(10), mode: RunLoopMode = .portReply
    ) throws(PortError) -> Reply {
        try request(
            MachMessage(id: id, content: content), sendLimit: sendLimit, replyLimit: replyLimit, mode: mode
        ).content()
    }

    /// Sends a value and suspends the task until its one reply comes, a value too.
    ///
    /// - Parameters:
    ///   - content: the value to send.
    ///   - reply: what the reply is.
    ///   - id: what the message is about.
    ///   - sendLimit: how long to wait for room in the port's queue.
    ///   - replyLimit: how long to wait for the reply, from the moment at which the message was sent.
    /// - Returns: the reply.
    /// - Throws: as ``request(_:sendLimit:replyLimit:)``; ``PortError/Code/malformedContent`` when the reply is not
    ///   such a value.
    nonisolated(nonsending) public func request<Content: MessageContent, Reply: MessageContent>(
        _ content: Content, as reply: Reply.Type = Reply.self, id: Int32 = 0, sendLimit: Duration = .seconds(10),
        replyLimit: Duration = .seconds(10)
    ) async throws(PortError) -> Reply {
        try await request(MachMessage(id: id, content: content), sendLimit: sendLimit, replyLimit: replyLimit).content()
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

// MARK: - Reply

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
        guard let replyTarget, replyTarget.isOpen else { return false }
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
        replyTarget?.watchAbandonment(DeathWatcher(loop: loop, mode: mode, handler: handler))
    }

    /// The id of the message that a port gets when a send-once right to it was used with ``SendOnceRight/fail(_:_:)``.
    public static let errorNotification: Int32 = 0o111

    /// The error that a message with the id ``errorNotification`` brings; nil for other messages.
    public var remoteError: PortError? {
        guard id == Self.errorNotification, let content = try? content(as: RemoteErrorContent.self) else { return nil }
        return .remote(code: content.code, text: content.text)
    }
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

extension MachMessage.Component: CustomStringConvertible {
    /// The kind of the part; for bytes, how many.
    public var description: String {
        switch self {
        case .bytes(let bytes): bytes.count == 1 ? "1 byte" : "\(bytes.count) bytes"
        case .right(let right): "\(right)"
        case .descriptor(let descriptor): "descriptor \(descriptor.rawValue)"
        case .receiveRight(let port): "receive right of \(port)"
        }
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

extension MachPort: CustomStringConvertible {
    /// The port's number in this process and its queue: for people, and of no fixed form.
    public var description: String {
        isValid ? "\(localPort.label) (\(queueCount) of \(queueLimit) messages)" : "\(localPort.label) (invalid)"
    }
}
