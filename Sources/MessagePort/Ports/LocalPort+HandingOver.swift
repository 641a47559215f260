// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Hands a port over to another one, and calls the closure when that is done, with the error if it has failed.
typealias HandOver =
    @Sendable (
        _ successor: PortAddress, _ limit: Duration, _ didEnd: @escaping @Sendable (PortError?) -> Void
    ) -> Void

extension LocalPort {
    /// Whether other processes may ask that the port be handed over.
    var allowsHandOver: Bool {
        isInherited ? false : state.withLock { $0.hasColdState && $0.coldState.handOver != nil }
    }

    /// Sets what hands the port over when another process asks for that; nil where none may.
    func setHandOver(_ handOver: HandOver?) {
        if isInherited { return }
        let old = state.withLock { state -> HandOver? in
            if state.mailbox.isDead { return handOver }
            defer { state.coldState.handOver = handOver }
            return state.coldState.handOver
        }
        withExtendedLifetime(old) {}  // released without the lock
    }

    func beginHandOver(_ question: HandOverQuestion, over connection: SocketConnection) -> Bool {
        let (handOver, isFirst) = state.withLock { state -> (HandOver?, Bool) in
            if state.mailbox.isDead || !state.hasColdState { return (nil, false) }
            defer { state.coldState.isHandingOver = state.coldState.handOver != nil }
            return (state.coldState.handOver, !state.coldState.isHandingOver)
        }
        guard let handOver else { return false }
        guard isFirst else {
            connection.answerHandOver(.failed(code: Int32(PortError.Code.notTransferable.rawValue)))
            return true
        }
        handOver(question.successor, question.limit) { [self] error in
            state.withLock { if !$0.mailbox.isDead { $0.coldState.isHandingOver = false } }
            // A port that has left this process has answered.
            if connection.isClosed { return }
            connection.answerHandOver(error.map { .failed(code: Int32($0.code.rawValue)) } ?? .done)
        }
        return true
    }
}
