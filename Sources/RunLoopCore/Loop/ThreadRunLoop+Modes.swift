// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// The mode of the innermost run; nil when the loop does not run.
    public var currentMode: RunLoopMode? {
        state.withLock { state in state.runs.last.map { state.modes[$0.mode].name } }
    }

    /// Every mode that something was added to or a block was posted for, and the default mode. Modes never go away.
    public var allModes: Set<RunLoopMode> {
        state.withLock { $0.modeNames }
    }

    /// Whether the loop waits: true from before it polls for an event until it has one, also when it only polls.
    public var isWaiting: Bool { isAsleep.load(ordering: .acquiring) }

    /// Whether the loop's thread has ended. Items that are added to such a loop are ignored, blocks posted to it are
    /// released.
    public var hasEnded: Bool {
        state.withLock { $0.hasEnded }
    }

    /// The earliest date at which a timer of a mode fires.
    ///
    /// - Parameter mode: the mode.
    /// - Returns: the date, which may be past; nil when the mode has no armed timer.
    public func nextTimerFireDate(in mode: RunLoopMode = .default) -> MonotonicInstant? {
        state.withLock { state in
            state.index(of: mode).flatMap { state.modes[$0].timers.nextFireDate }
        }
    }

    /// Makes a mode common, permanently: everything that was or will be added to the common modes is in it too.
    ///
    /// For sources that are new in it, the `schedule` routine is called on the calling thread.
    ///
    /// - Parameter mode: the mode; one that is already common, and ``RunLoopMode/common`` itself, change nothing.
    public func addCommonMode(_ mode: RunLoopMode) {
        for (item, index) in state.withLock({ $0.addCommonMode(mode) }) {
            switch item {
            case .source(let source):
                do throws(SystemError) {
                    try source.didEnter([index], of: self, orLater: true)
                } catch {
                    Self.trapUnwatchable(error)
                }
            case .timer(let timer): timer.armAgain()
            case .observer: break
            }
        }
        doorbell.endWait()
    }

    /// Stops the innermost run: it returns ``RunLoopRunResult/stopped`` at the end of its current pass.
    ///
    /// A stop is never lost: when the loop does not run, it ends the next run at once. It applies to the run that is
    /// innermost now; when that run returns for another reason at the same moment, the stop goes to the run below.
    /// Stops do not add up.
    public func stop() {
        state.withLock { $0.stop() }
        doorbell.endWait()
    }

    /// Wakes the loop when it sleeps, or keeps the current pass from sleeping. Makes no run return, and has no effect
    /// on a loop that does not run or that handles an event, because it checks everything before it sleeps.
    public func wakeUp() {
        doorbell.wakeUp()
    }

    /// Posts a block, which the loop calls once when it runs in one of the modes, after all blocks posted before.
    ///
    /// The call returns at once and wakes the loop. A block that is never called because the thread ends is released on
    /// the ending thread. When the thread has already ended, the block is released at once.
    ///
    /// - Parameters:
    ///   - modes: in which modes; ``RunLoopMode/common`` means the modes that are common when the loop calls its
    ///     blocks.
    ///   - name: what the block is called in traces and reports.
    ///   - block: what to call, on the loop's thread.
    public func perform(
        in modes: [RunLoopMode] = [.default], name: String? = nil, _ block: @escaping @Sendable () -> Void
    ) {
        let mustWake = state.withLock { state in
            if state.hasEnded { return false }
            return state.post(block, in: modes, name: name)
        }
        if mustWake { doorbell.endWait() }
    }
}
