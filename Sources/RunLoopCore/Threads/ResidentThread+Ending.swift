// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension ResidentThread {
    /// Makes the thread end after the tasks that were posted before; later ones are refused.
    ///
    /// Returns at once, and may be called on the thread itself and repeatedly. After those tasks, every run of the loop
    /// that is in progress is stopped, nested ones too: a task that waits in a nested run continues. Then the waiting
    /// jobs of actors and tasks are run, and the loop ends: sources are cancelled, timers and observers dropped, and
    /// blocks that were posted to the loop itself meanwhile are released without being called.
    ///
    /// A task that never returns prevents the thread from ending. So do jobs that always make another: an actor or a
    /// task of this loop that never finishes and never waits for anything else meanwhile.
    public func stop() {
        let (loop, keeper) = (loop, keeper)
        state.withLock { state in
            if state.isStopping { return }
            state.isStopping = true
            loop.perform(in: [.common], name: "thread stop") {
                keeper.invalidate()
                loop.stopAllRuns()
            }
        }
    }

    /// Blocks until the thread is gone and its loop has ended. ``stop()`` must be called elsewhere.
    ///
    /// Several threads may wait, and later calls return at once. Traps on the thread itself. Whatever prevents the
    /// thread from ending, as described at ``stop()``, prevents a call without a limit from returning.
    ///
    /// - Parameter limit: the longest time; nil for no limit, zero or less to only check. The loop has ended within it.
    /// - Returns: whether the thread is gone.
    @discardableResult
    public func join(within limit: Duration? = nil) -> Bool {
        if loop.isCurrent {
            fatalError(
                "A resident thread cannot wait for its own end. Call `stop` there, and `join` on another thread.")
        }
        let deadline = limit.map { $0 <= .zero ? .distantPast : .after($0) } ?? MonotonicInstant.distantFuture
        guard loopDidEnd.wait(until: deadline) else { return false }
        guard let thread = state.withLock({ $0.thread.take() }) else { return threadDidEnd.wait(until: deadline) }
        thread.join()
        threadDidEnd.set()
        return true
    }
}

extension ThreadRunLoop {
    /// Stops every run that is in progress, nested ones and those below them.
    func stopAllRuns() {
        state.withLock { $0.stopAllRuns() }
        doorbell.endWait()
    }
}

extension RunLoopState {
    mutating func stopAllRuns() {
        for index in runs.indices where runs[index].takesStops { runs[index].isStopped = true }
    }
}
