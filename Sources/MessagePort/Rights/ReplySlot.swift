// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// Where a synchronous request's reply arrives: filled once, by any thread, which then wakes the waiting loop.
final class ReplySlot: ReplyReceiver {
    private enum State: Sendable {
        case waiting
        case replied(MachMessage)
        case failed(PortError)
        case abandoned
    }

    private let state = Mutex<State>(.waiting)
    private let loop: ThreadRunLoop  // immutable

    init(wakes loop: ThreadRunLoop) {
        self.loop = loop
    }

    var isWaiting: Bool {
        state.withLock { if case .waiting = $0 { true } else { false } }
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        guard fill(.replied(message)) else { throw PortError(.deadName) }
    }

    func fail(_ error: PortError) {
        _ = fill(.failed(error))
    }

    func expectReply(over connection: SocketConnection) {}

    /// Takes what came; what comes later is refused.
    func take() throws(PortError) -> MachMessage {
        let last = state.withLock { state in
            let last = state
            state = .abandoned
            return last
        }
        switch last {
        case .replied(let message): return message
        case .failed(let error): throw error
        case .waiting, .abandoned: throw PortError(.replyTimedOut)
        }
    }

    private func fill(_ new: State) -> Bool {
        let filled = state.withLock { state in
            guard case .waiting = state else { return false }
            state = new
            return true
        }
        if filled { loop.wakeUp() }
        return filled
    }
}
