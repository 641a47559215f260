// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a wait finds what is ready already: one access to the loop's state for each source that may be ready, and one
// when there is none, which decides how the loop may wait.

/// A scan for an event, in steps: between two steps a source is checked for readiness.
struct ReadyScan {
    /// What to do next.
    enum Step {
        /// Check whether the source is ready; it has left the ready list.
        case check
        /// Timers are due, and go next.
        case timers
        /// Nothing is ready: wait as planned.
        case nothing
    }

    /// The source to check, and what was known of it.
    fileprivate(set) var source: RunLoopSource?
    fileprivate(set) var candidate: ReadyQueue.Candidate?
    /// How to wait, when nothing is ready.
    fileprivate(set) var plan = WaitPlan.none
    fileprivate var timersAreDue = false
    /// How many sources may still be checked; nil before the first step.
    fileprivate var left: Int?
}

/// The result of accepting a source that was found ready.
enum ReadyOutcome {
    /// It has left the mode meanwhile.
    case gone
    /// It is back in its position on the ready list.
    case isListed
    /// It is the main queue, and back on the list.
    case mainQueue
    /// It is to be performed: there is no observer to notify before.
    case begins
}

extension RunLoopState {
    /// The next step of a scan; the source to check has left the list.
    ///
    /// - Returns: whether the source, if it is ready, may be performed without another access to the state; and the
    ///   step.
    mutating func next(_ scan: inout ReadyScan, _ run: LoopRun, at now: MonotonicInstant) -> (Bool, ReadyScan.Step) {
        if scan.candidate != nil { dismiss(&scan, in: run.mode) }
        let left: Int
        if let more = scan.left {
            left = more
        } else {
            scan.timersAreDue = modes[run.mode].timers.isDue(at: now)
            left = !scan.timersAreDue || run.hasJustFiredTimers ? modes[run.mode].ready.count : 0
        }
        if left > 0,
            let first = modes[run.mode].dequeueFirst(&scan.candidate, unless: mainQueue?.source, &registrations)
        {
            scan.left = left - 1
            scan.source = registrations.list[first.registration].source
            return (first.isSpeculative, .check)
        }
        scan.left = 0
        if scan.timersAreDue { return (false, .timers) }
        scan.plan = waitPlan(run)
        return (false, .nothing)
    }

    /// Records that the source that was checked is not ready.
    private mutating func dismiss(_ scan: inout ReadyScan, in mode: Int) {
        guard var candidate = scan.candidate, candidate.isSpeculative, let source = scan.source,
            registrations.registration(of: source, in: mode, near: candidate.registration) == candidate.registration
        else { return }
        modes[mode].ready.rollBack(&candidate, &registrations)
    }

    /// Records that the source that was checked is ready.
    ///
    /// The scan's registration index is corrected when the source has left the mode and come back. The source may begin
    /// to be performed at once only if there is no observer to notify of the end of the wait.
    mutating func accept(_ scan: inout ReadyScan, in mode: Int, mayBegin: Bool) -> ReadyOutcome {
        guard let source = scan.source, var candidate = scan.candidate else { return .gone }
        scan.candidate = nil
        guard let number = registrations.registration(of: source, in: mode, near: candidate.registration) else {
            return .gone
        }
        candidate.registration = number
        if candidate.isSpeculative { modes[mode].ready.rollBack(&candidate, &registrations) }
        scan.candidate = candidate
        if candidate.descriptor != nil { modes[mode].noteReport(of: number) }
        let isMainQueue = mainQueue?.source == source.id
        guard mayBegin, !isMainQueue, modes[mode].observers.isEmpty else {
            modes[mode].ready.reinsert(candidate, &registrations)
            return isMainQueue ? .mainQueue : .isListed
        }
        modes[mode].ready.dequeueForPerform(candidate, &registrations)
        return .begins
    }
}

extension ModeState {
    /// Removes the first source from the ready list. Unless that takes another access to the state, it also does in
    /// advance what `accept` will do, which is right if the source is ready and the state does not change in between.
    /// The candidate is set to what was known of the source. The main queue's source is not performed.
    ///
    /// - Returns: its registration, and whether it was accepted in advance; nil when the list is empty.
    fileprivate mutating func dequeueFirst(
        _ candidate: inout ReadyQueue.Candidate?, unless mainQueue: ItemID?, _ registrations: inout RegistrationTable
    ) -> (registration: RegistrationIndex, isSpeculative: Bool)? {
        guard var first = ready.dequeueFirst(&registrations) else { return nil }
        if observers.isEmpty, first.descriptor == nil || recentReports.last == first.registration,
            mainQueue == nil || registrations.list[first.registration].source?.id != mainQueue
        {
            ready.speculate(on: &first, &registrations)
        }
        candidate = first
        return (first.registration, first.isSpeculative)
    }
}
