// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a wait looks for what is there already: one look at the loop's state for each source that may be ready, and one
// when there is none, which says how the loop may wait.

import PortSystem

/// A look for an event, in steps: between two of them a source is asked whether it is ready.
struct ReadyLook {
    /// What to do next.
    enum Step {
        /// Ask a source, which is off the ready list now, whether it is ready.
        case ask(ReadyList.Candidate, RunLoopSource, DescriptorWatch?)
        /// Timers are due, and it is their turn.
        case timers
        /// Nothing is there: wait so.
        case nothing(WaitPlan)
    }

    fileprivate var timersAreDue = false
    /// How many sources may still be asked; nil before the first step.
    fileprivate var left: Int?
}

/// What becomes of a source that was found ready.
enum ReadyAnswer {
    /// It has left the mode meanwhile.
    case gone
    /// It is back in its place on the ready list.
    case isListed
    /// It is being performed: nobody has to be told anything before.
    case begun
}

extension RunLoopState {
    /// The next step of a look; the source that is to be asked is off the list.
    mutating func next(_ look: inout ReadyLook, _ run: LoopRun, at now: MonotonicInstant) -> ReadyLook.Step {
        let left: Int
        if let more = look.left {
            left = more
        } else {
            look.timersAreDue = modes[run.mode].timers.isDue(at: now)
            left = !look.timersAreDue || run.hasJustFiredTimers ? modes[run.mode].ready.count : 0
        }
        if left > 0, let candidate = modes[run.mode].ready.takeFirst(),
            let source = source(candidate.id, in: run.mode)
        {
            look.left = left - 1
            return .ask(candidate, source, modes[run.mode].watches[candidate.id])
        }
        look.left = 0
        return look.timersAreDue ? .timers : .nothing(waitPlan(run))
    }

    /// Takes note that a source is ready.
    ///
    /// - Parameters:
    ///   - candidate: the source, off the list.
    ///   - mode: the run's mode.
    ///   - mayBegin: whether it is to be performed at once, if no observer has to be told of the end of the wait.
    /// - Returns: where it is now.
    mutating func accept(_ candidate: ReadyList.Candidate, in mode: Int, mayBegin: Bool) -> ReadyAnswer {
        guard isMember(candidate.id, of: mode) else { return .gone }
        if candidate.report != nil { modes[mode].recentReports.note(candidate.id) }
        guard mayBegin, modes[mode].observers.isEmpty else {
            modes[mode].ready.putBack(candidate)
            return .isListed
        }
        modes[mode].ready.takeForPerform(candidate)
        performing.append(candidate.id)
        return .begun
    }
}
