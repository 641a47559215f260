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
        var retained: (any AnyObject & Sendable)?
    }

    private weak let port: MachPort?
    private let localPort: LocalPort  // immutable
    private let generation: UInt64  // immutable
    private let state = Mutex(State())  // locked before the source's lock

    init(_ port: MachPort, _ generation: UInt64) {
        self.port = port
        localPort = port.localPort
        self.generation = generation
    }

    func setSource(_ source: RunLoopSource) {
        state.withLock { $0.source = source }
    }

    var checksWhenPerformed: Bool { true }
    func isReady() -> Bool { localPort.hasMessage(inGeneration: generation) }
    func visitPollables(_ body: (any BusyPollable) -> Void) { localPort.visitPollables(body) }

    func didEnter(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        retainWhileInLoop()
        localPort.otherListenerWillBegin()
    }

    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        let port = port
        localPort.otherListenerWillBegin()
        retainWhileInLoop()
        port?.dropUnusedSource()
    }

    func perform() -> SourceOutcome { perform { false } }

    func perform(while beginNextPass: () -> Bool) -> SourceOutcome {
        port?.handleMessages(generation, while: beginNextPass) ?? .nothing
    }

    /// Called after each entry into a mode and each leave: so the last call sees the final state.
    private func retainWhileInLoop() {
        if localPort.isInherited { return }
        let retained: (any AnyObject & Sendable)? = localPort.owningObject ?? port
        let old = state.withLock { state in
            let old = state.retained
            state.retained = state.source?.loops.isEmpty == false ? retained : nil
            return old
        }
        withExtendedLifetime(old) {}  // the port may end with it, and the source with that
    }
}
