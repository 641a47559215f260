// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    /// A number for a source that will take the turn.
    func makeTurnNumber() -> UInt64 {
        state.withLock { $0.turns.makeNumber() }
    }

    /// Gives the turn to the source with this number.
    func giveTurn(to number: UInt64) {
        let sources = state.withLock { state in
            state.mailbox.reclaim()
            state.turns.give(to: number)
            return state.sources
        }
        sources.ring()
    }

    /// Whether a source has a message to handle.
    func hasMessage(inTurn number: UInt64) -> Bool {
        state.withLock { $0.hasMessage(inTurn: number) }
    }

    /// Takes the oldest message for a handler, whose end `endTurn` is told.
    ///
    /// - Parameters:
    ///   - number: the source's number.
    ///   - loop: the loop on which the handler runs.
    ///   - claim: set to what the handler may take without the port's lock after that.
    /// - Returns: nil when there is none, or it is not this source's turn.
    func take(inTurn number: UInt64, on loop: ThreadRunLoop, _ claim: inout MessageBatch?) -> MachMessage? {
        let handler = HandlersUnderWay.Handler(loop: loop, turn: number)
        if !readsAhead, let message = takeQueued(for: handler, &claim) { return message }
        return takeAfterLook(for: handler, &claim)
    }

    /// As above, after a look at the sockets.
    private func takeAfterLook(for handler: HandlersUnderWay.Handler, _ claim: inout MessageBatch?) -> MachMessage? {
        var budget = lookBudget
        if readsAhead {
            receiveAllFromSockets(&budget)
            if let message = takeQueued(for: handler, &claim) { return message }
        }
        _ = receiveFromSockets(&budget, forTurn: handler.turn)
        return takeQueued(for: handler, &claim)
    }

    /// Handles a message, and the next ones as long as the loop goes on with this port.
    ///
    /// - Returns: whether there was one, a new connection alone is none; and whether there are more.
    func handleMessages(
        inTurn number: UInt64, on loop: ThreadRunLoop, while goesOn: () -> Bool, _ handle: (MachMessage) -> Void
    ) -> SourceOutcome {
        var claim: MessageBatch?
        // Functions, so that each message is gone before the next is taken, with what it alone holds.
        func handleQueued() -> Bool {
            guard let message = take(inTurn: number, on: loop, &claim) else { return false }
            handle(message)
            (consume message).leaveMemory()
            return true
        }
        func handleClaimed(_ claim: MessageBatch) -> Bool {
            guard let message = claim.next() else { return false }
            handle(message)
            (consume message).leaveMemory()
            return true
        }
        guard handleQueued() else { return .nothing }
        while true {
            var hasBegunTurn = false
            if let claim {
                while claim.remaining > 0 {
                    guard goesOn() else { return SourceOutcome(hasHandled: true, isReady: endTurn(number, on: loop)) }
                    if handleClaimed(claim) { continue }
                    hasBegunTurn = true  // somebody has had the rest put back
                }
                letSomeCome()
            }
            let hasMore = endTurn(number, on: loop)
            guard hasMore, hasBegunTurn || goesOn() else { return SourceOutcome(hasHandled: true, isReady: hasMore) }
            guard handleQueued() else { return .handled }
        }
    }

    /// So long at most the sender of a stream is given: nine messages or so, for one look of ours.
    private static let timeForMore = Duration.microseconds(1)

    /// Gives the sender of a stream, all of which was handled, a moment to send more: who claims each message by itself takes the
    /// lock as often as the sender, and both wait for it.
    private func letSomeCome() {
        let end = MonotonicInstant.after(Self.timeForMore)
        repeat {
            for _ in 0..<16 { sysPause() }
        } while MonotonicInstant.now < end
    }

    /// A handler is over. The sources that had to wait for it go on.
    ///
    /// - Returns: whether its source has another message to handle.
    @discardableResult
    func endTurn(_ number: UInt64, on loop: ThreadRunLoop) -> Bool {
        var held: (sources: SourceList, sockets: PortSockets?)?
        let hasMessage = state.withLock { state in
            state.handlers.remove(HandlersUnderWay.Handler(loop: loop, turn: number))
            state.mailbox.endClaim()
            if state.turns.end(number) { held = (state.sources, state.openedSockets) }
            return state.hasMessage(inTurn: number)
        }
        if let held { goOn(held.sources, held.sockets) }
        return hasMessage
    }

    /// Nothing holds the sources up any more.
    private func goOn(_ sources: SourceList, _ sockets: PortSockets?) {
        if let sockets { for source in sources.all { source.watchSoon(pollable: sockets.rawValue) } }
        sources.ring()
    }

    /// Has a source that must wait for the end of a handler not look at the sockets until then: they may stay readable.
    func pauseWhileHeldUp(_ source: RunLoopSource) {
        let sockets = state.withLock { $0.turns.isHeldUp ? $0.extras.sockets : nil }
        guard let sockets else { return }
        try? source.watch(pollable: nil)
        if state.withLock({ !$0.turns.isHeldUp }) { source.watchSoon(pollable: sockets.rawValue) }
    }
}

extension LocalPort {
    /// The source with this number looks at one socket, and takes what comes, unless it is another's turn.
    func beginAttendance(inTurn number: UInt64) {
        state.withLock { $0.isAttended = $0.turns.mayBegin(number) }
    }

    /// It does not take anything after all.
    func giveUpAttendance() {
        state.withLock { $0.endAttendance() }?.ring()
    }
}

extension LocalPort.State {
    /// The source has taken what it could.
    ///
    /// - Returns: the sources to ring, because there is more.
    mutating func endAttendance() -> SourceList? {
        if !isAttended { return nil }
        isAttended = false
        return mailbox.queue.isEmpty ? nil : sources
    }

    fileprivate func hasMessage(inTurn number: UInt64) -> Bool {
        !mailbox.queue.isEmpty && turns.mayBegin(number)
    }
}
