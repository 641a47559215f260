// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
public import RunLoopCore

/// The right to send exactly one message to a port: the reply that a requester waits for.
/// `MACH_MSG_TYPE_MOVE_SEND_ONCE`.
///
/// It cannot be copied, and sending consumes it, so a second reply does not compile. When it is dropped unused, the
/// requester is notified at once (``PortError/Code/replyDropped``). A message that carries the right may be sent more
/// than once: the first reply counts, and the requester learns that there is none when the last of the receivers has
/// dropped the right.
///
/// - Important: Thread safety: any thread.
public struct SendOnceRight: ~Copyable, Sendable {
    /// How long a reply to a reply of another process waits for room, unless the caller says otherwise: one second.
    public static let defaultLimit = Duration.seconds(1)

    private var target: ReplyTarget?  // nil only at the end of `release`

    package init(taken target: ReplyTarget) {
        self.target = target
    }

    deinit {
        target?.fail(PortError(.replyDropped))
    }

    /// Sends the one message. Never waits for room in a queue of this process, which a reply may exceed by one.
    ///
    /// Nor does it wait for a requester in another process that has sent its request to a port of this one: a reply
    /// that finds no room in the connection is queued, and sent by a thread of the library as the requester reads.
    /// Until then nothing more is received from that process. Replies that are still unflushed when this process ends
    /// are lost: ``MachPort/flushReplies(within:)-9op2h`` waits until none are.
    ///
    /// Only a reply to a reply, to a request that came as the answer of another process, waits for room.
    ///
    /// - Parameters:
    ///   - message: the reply. It stays the caller's.
    ///   - limit: how long to wait for room in the connection, where this waits for it.
    /// - Throws: ``PortError/Code/deadName`` when the requester is gone, or has left too much unread and lost its
    ///   connection; ``PortError/Code/sendTimedOut`` when this waited for room and none came;
    ///   ``PortError/Code/messageTooLarge``, ``PortError/Code/tooManyDescriptors``. The requester then learns that no
    ///   reply will come.
    public consuming func send(_ message: MachMessage, within limit: Duration = SendOnceRight.defaultLimit)
        throws(PortError)
    {
        do throws(PortError) {
            try target?.deliver(message, until: .after(limit))
        } catch {
            throw error.at("the port of the requester, which no longer waits if it is gone")
        }
    }

    /// Replies with an error: the requester's call throws ``PortError/Code/remoteError`` with this code and text. Never
    /// waits. It is no failure when the requester is gone.
    ///
    /// At a port (``MachPort/makeSendOnceRight()``) a message arrives instead, with the id
    /// ``MachMessage/errorNotification``: ``MachMessage/remoteError`` is the error.
    ///
    /// - Parameters:
    ///   - code: a number that both sides agree on.
    ///   - text: what happened, for people; truncated to ``PortError/remoteTextLimit`` bytes.
    public consuming func fail(_ code: Int32, _ text: String = "") {
        target?.fail(.remote(code: code, text: text))
    }

    /// Whether the requester no longer waits: its task was cancelled, its time is up, or it is gone.
    ///
    /// See ``MachMessage/isCancelled``.
    public var isCancelled: Bool { target?.pollAbandonment() ?? false }

    /// Asks for one notice, on a run loop, when the requester no longer waits.
    ///
    /// See ``MachMessage/setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - loop: the loop on which to call the handler.
    ///   - mode: the mode in which to call it.
    ///   - handler: called once on the loop's thread, soon when the requester no longer waits; never once the right was
    ///     used or given to another message.
    public func setCancellationHandler(
        on loop: ThreadRunLoop, in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void
    ) {
        target?.awaitAbandonment(DeathNotice(loop: loop, mode: mode) { _ in handler() })
    }

    /// Asks for one notice, on the current thread's run loop, when the requester no longer waits.
    ///
    /// See ``setCancellationHandler(on:in:_:)``.
    ///
    /// - Parameters:
    ///   - mode: the mode in which to call the handler.
    ///   - handler: called once on this thread.
    @available(*, noasync, message: "A task has no thread of its own: use `setCancellationHandler(on:)`.")
    public func setCancellationHandler(in mode: RunLoopMode = .common, _ handler: @escaping @Sendable () -> Void) {
        setCancellationHandler(on: .current, in: mode, handler)
    }

    /// Gives the right up without a reply: the requester is notified at once.
    public consuming func drop() {}

    /// The target for a message that will carry the right.
    package consuming func release() -> ReplyTarget? {
        target.take()?.moved()
    }
}

// MARK: - Notices

extension MachMessage {
    /// The id of the message that a port gets when a send-once right to it was dropped unused, or died with its holder:
    /// `MACH_NOTIFY_SEND_ONCE`.
    public static let sendOnceNotification: Int32 = 0o107

    /// The id of the message that a port gets when a send-once right to it was used with ``SendOnceRight/fail(_:_:)``.
    public static let errorNotification: Int32 = 0o111

    /// The error that a message with the id ``errorNotification`` brings; nil for other messages.
    public var remoteError: PortError? {
        var reader = MessageReader(bytes)
        guard id == Self.errorNotification, let code = try? reader.read(Int32.self),
            let text = try? reader.read(String.self), (try? reader.finish()) != nil
        else { return nil }
        return .remote(code: code, text: text)
    }

    /// The message that brings an error.
    init(errorCode code: Int32, text: String) {
        var writer = MessageWriter()
        writer.write(code)
        writer.write(text)
        self.init(id: Self.errorNotification, bytes: writer.bytes)
    }
}
