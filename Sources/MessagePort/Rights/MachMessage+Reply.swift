// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore

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
        return replyTarget.isAbandoned
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
    ///   - handler: called once on the loop's thread, soon when the requester has given up already; never after the
    ///     reply. It should not hold the message.
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
