// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

extension PortCore {
    /// A number for a source that will take the turn.
    func makeTurnNumber() -> UInt64 {
        state.withLock { $0.turns.makeNumber() }
    }

    /// Gives the turn to the source with this number.
    func giveTurn(to number: UInt64) {
        let sources = state.withLock { state in
            state.turns.give(to: number)
            return state.sources
        }
        for source in sources { source.ring() }
    }

    /// Whether a source has a message to handle.
    func hasMessage(inTurn number: UInt64) -> Bool {
        state.withLock { !$0.mailbox.queue.isEmpty && $0.turns.mayBegin(number) }
    }

    /// Takes the oldest message for a handler, whose end `endTurn` is told.
    ///
    /// - Returns: nil when there is none, or it is not this source's turn.
    func take(inTurn number: UInt64, on loop: ThreadRunLoop) -> MachMessage? {
        var budget = lookBudget
        if readsAhead { receiveAllFromSockets(&budget) }
        if let message = takeQueued(for: (number, loop)) { return message }
        return receiveFromSockets(&budget) == 0 ? nil : takeQueued(for: (number, loop))
    }

    /// A handler is over. The sources that had to wait for it go on.
    func endTurn(_ number: UInt64, on loop: ThreadRunLoop) {
        let (sources, sockets) = state.withLock { state in
            if let index = state.handlers.lastIndex(where: { $0.turn == number && $0.loop === loop }) {
                state.handlers.remove(at: index)
            }
            let mayBegin = state.turns.end(number)
            return (mayBegin ? state.sources : [], state.extras.sockets)
        }
        for source in sources {
            if let sockets { try? source.watch(sockets.rawValue) }
            source.ring()
        }
    }

    /// Has a source that must wait for the end of a handler not look at the sockets until then: they may stay readable.
    func pauseWhileHeldUp(_ source: RunLoopSource) {
        let sockets = state.withLock { $0.turns.isHeldUp ? $0.extras.sockets : nil }
        guard let sockets else { return }
        try? source.watch(nil)
        if state.withLock({ !$0.turns.isHeldUp }) { try? source.watch(sockets.rawValue) }
    }
}
