// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The requests of one connection, in both directions, by the tokens that ask for their replies. A plain value: it
// returns what is to be notified, and the connection notifies it after the unlock.
//
//   of this end    sending ──didSend──▶ awaited ──a reply, an error, or abandoned──▶ gone
//                  sending ──a reply, or sending fails──▶ gone
//   of the peer    unanswered ──answered, or dropped──▶ gone
//                  unanswered ──the peer abandons it──▶ abandoned ──answered, or dropped──▶ gone

struct RequestTable: Sendable {
    /// A request of the peer's that is neither answered nor dropped.
    private enum IncomingRequest {
        /// Whether only its receiver can answer it, and what to call when it is abandoned.
        case unanswered(isBound: Bool, [@Sendable () -> Void])
        case abandoned

        var handlers: [@Sendable () -> Void] { if case .unanswered(_, let handlers) = self { handlers } else { [] } }
    }

    /// The token of the newest request of this end; zero before the first.
    private(set) var lastToken: UInt64 = 0
    /// The requests of this end. While the message is being sent, its sender owns the reply right: the connection's end
    /// does not touch it.
    private var awaited = SmallTable<UInt64, (target: ReplyTarget, isSending: Bool)>()
    private var unanswered = SmallTable<UInt64, IncomingRequest>()

    /// Whether this end awaits a reply.
    var awaitsReply: Bool { !awaited.isEmpty }

    /// Whether the peer awaits a reply.
    var hasUnanswered: Bool { !unanswered.isEmpty }

    /// The tokens under which the peer awaits replies.
    var unansweredTokens: Set<UInt64> { Set(unanswered.keys) }

    /// Continues what another process has begun: the next token is a higher one.
    mutating func resume(after token: UInt64) { lastToken = max(lastToken, token) }

    func isAwaited(_ token: UInt64) -> Bool { awaited[token] != nil }
    func isUnanswered(_ token: UInt64) -> Bool { unanswered[token] != nil }
    /// Whether only the receiver of the peer's request can answer it.
    func isBound(_ token: UInt64) -> Bool {
        if case .unanswered(let isBound, _) = unanswered[token] { isBound } else { false }
    }
    /// The same, or no such request is here: it has not come, or the reply to it precedes all that is sent now.
    func mayBeBound(_ token: UInt64) -> Bool { unanswered[token] == nil || isBound(token) }
    /// What awaits the reply under the token.
    func awaitedTarget(_ token: UInt64) -> ReplyTarget? { awaited[token]?.target }
    func isAbandoned(_ token: UInt64) -> Bool {
        if case .abandoned = unanswered[token] { true } else { false }
    }

    /// Begins a request, whose message is about to be sent.
    ///
    /// - Returns: its token.
    mutating func begin(_ target: ReplyTarget) -> UInt64 {
        lastToken += 1
        awaited[lastToken] = (target, isSending: true)
        return lastToken
    }

    /// The message with the request was sent.
    ///
    /// - Returns: what receives the reply; nil when that has come already, or is no longer wanted.
    mutating func didSend(_ token: UInt64) -> ReplyTarget? {
        guard let target = awaited[token]?.target else { return nil }
        awaited[token] = (target, isSending: false)
        return target
    }

    /// Ends a request of this end.
    ///
    /// - Returns: what was to receive the reply; nil when the request has ended before.
    mutating func end(_ token: UInt64) -> ReplyTarget? { awaited.remove(token)?.target }

    mutating func addUnanswered(_ token: UInt64) { unanswered[token] = .unanswered(isBound: true, []) }

    /// The reply right left its message: from now on any thread may answer the request.
    mutating func noteRightRemoved(_ token: UInt64) {
        guard case .unanswered(true, let handlers) = unanswered[token] else { return }
        unanswered[token] = .unanswered(isBound: false, handlers)
    }

    /// A request of the peer's was answered or dropped.
    ///
    /// - Returns: the handlers, which need not be called any more; the caller releases them without a lock.
    mutating func settle(_ token: UInt64) -> [@Sendable () -> Void] {
        unanswered.remove(token)?.handlers ?? []
    }

    /// The peer abandons a request.
    ///
    /// - Returns: what to call.
    mutating func abandon(_ token: UInt64) -> [@Sendable () -> Void] {
        guard let request = unanswered[token] else { return [] }
        unanswered[token] = .abandoned
        return request.handlers
    }

    /// The peer is gone, and all its requests are abandoned.
    ///
    /// - Returns: what to call.
    mutating func abandonAll() -> [@Sendable () -> Void] {
        let handlers = unanswered.values.flatMap(\.handlers)
        for token in unanswered.keys { unanswered[token] = .abandoned }
        return handlers
    }

    /// Calls `handler` when the request is abandoned.
    ///
    /// - Returns: whether it is abandoned already, and `handler` is not retained.
    mutating func awaitAbandonment(of token: UInt64, _ handler: @escaping @Sendable () -> Void) -> Bool {
        switch unanswered[token] {
        case .unanswered(let isBound, let handlers):
            unanswered[token] = .unanswered(isBound: isBound, handlers + [handler])
        case .abandoned: return true
        case nil: break
        }
        return false
    }

    /// The connection ends. A request that is being sent stays until that is over.
    ///
    /// - Returns: what will receive no reply, and what to call because the peer's requests are abandoned.
    mutating func endAllSent() -> (unanswered: [ReplyTarget], abandoned: [@Sendable () -> Void]) {
        let ended = awaited.removeAll { !$0.isSending }.map(\.target)
        let abandoned = unanswered.removeAll { _ in true }.flatMap(\.handlers)
        return (ended, abandoned)
    }
}
