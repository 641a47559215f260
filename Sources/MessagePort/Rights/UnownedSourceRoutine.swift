// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

/// The routine of a port's source that other code may have, or of a port that belongs to another object: it retains the
/// port, or that object, while the source is in a loop, and only then.
final class UnownedSourceRoutine: SourceRoutine {
    private struct State {
        weak var source: RunLoopSource?
        /// The port, or what owns it, while the source is in a loop.
        var keeper: (any AnyObject & Sendable)?
    }

    private weak let port: MachPort?
    private let core: LocalPort  // immutable
    private let turn: UInt64  // immutable
    private let state = Mutex(State())  // locked before the source's lock

    init(_ port: MachPort, _ turn: UInt64) {
        self.port = port
        core = port.core
        self.turn = turn
    }

    /// Sets the source of this routine.
    func setSource(_ source: RunLoopSource) {
        state.withLock { $0.source = source }
    }

    var looksWhenPerformed: Bool { true }
    func isReady() -> Bool { core.hasMessage(inTurn: turn) }
    func visitArrivalPlaces(_ body: (any BusyPollable) -> Void) { core.visitArrivalPlaces(body) }

    func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        keepWhileInLoop()
        core.willBeHeardElsewhere()
    }

    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        let port = port
        core.willBeHeardElsewhere()
        keepWhileInLoop()
        port?.dropUnusedSource()
    }

    func perform() -> SourceOutcome { perform { false } }

    func perform(while goesOn: () -> Bool) -> SourceOutcome {
        port?.handleMessages(turn, while: goesOn) ?? .nothing
    }

    /// Called after each entry into a mode and each leave: so the last call sees the final state.
    private func keepWhileInLoop() {
        let keeper: (any AnyObject & Sendable)? = core.owner ?? port
        let old = state.withLock { state in
            let old = state.keeper
            state.keeper = state.source?.loops.isEmpty == false ? keeper : nil
            return old
        }
        withExtendedLifetime(old) {}  // the port may end with it, and the source with that
    }
}
