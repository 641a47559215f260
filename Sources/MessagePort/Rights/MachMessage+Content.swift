// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
