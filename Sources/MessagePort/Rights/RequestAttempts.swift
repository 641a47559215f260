// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// How often one request may be sent, and until when. A plain value. A request is sent again when it was not sent at
/// all, because the owner of the name had ended; and, when asking twice does no harm, after the owner's end.
struct RequestAttempts {
    private let sendLimit: Duration
    private let replyLimit: Duration
    private let isIdempotent: Bool
    /// Until when to wait for an owner, and for room.
    private(set) var sendDeadline: MonotonicInstant
    private var replyDeadline: MonotonicInstant?
    /// Why an earlier attempt failed, whose message may have been read. Outside, so that this value is small.
    private var failure: Shared<PortError>?

    init(sendLimit: Duration, replyLimit: Duration, isIdempotent: Bool) {
        (self.sendLimit, self.replyLimit, self.isIdempotent) = (sendLimit, replyLimit, isIdempotent)
        sendDeadline = .after(sendLimit)
    }

    /// Whether to wait for a reply at all.
    var mayWait: Bool { replyLimit > .zero }

    /// The message was sent.
    ///
    /// - Returns: how long to wait for the reply; all attempts together have one limit, from the first.
    mutating func didSend() -> Duration {
        guard isIdempotent else { return replyLimit }
        let deadline = replyDeadline ?? .after(replyLimit)
        replyDeadline = deadline
        return deadline == .distantFuture ? replyLimit : MonotonicInstant.now.duration(to: deadline)
    }

    /// Whether to send the message to the next owner. The owner that it was for has ended.
    mutating func mayRepeat(after error: PortError) -> Bool {
        if error.code == .deadName { return true }
        guard error.code == .peerDied, isIdempotent else { return false }
        failure = Shared(error)
        sendDeadline = min(.after(sendLimit), replyDeadline ?? .distantFuture)
        return true
    }

    /// What to throw after an attempt has failed: an attempt that sent nothing says nothing of those before it.
    func outcome(_ error: PortError) -> PortError {
        if let failure, error.delivery == .notSent { failure.value } else { error }
    }
}
