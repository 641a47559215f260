// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a wait finds what is ready already: one access to the loop's state for each source that may be ready, and one
// when there is none, which decides how the loop may wait.

import PortSystem

/// A scan for an event, in steps: between two steps a source is checked for readiness.
struct ReadyScan {
    /// What to do next.
    enum Step {
        /// Check whether the source is ready; it has left the ready list.
        case ask
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
enum ReadyAnswer {
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
    mutating func next(_ look: inout ReadyScan, _ run: LoopRun, at now: MonotonicInstant) -> (Bool, ReadyScan.Step) {
        if look.candidate != nil { dismiss(&look, in: run.mode) }
        let left: Int
        if let more = look.left {
            left = more
        } else {
            look.timersAreDue = modes[run.mode].timers.isDue(at: now)
            left = !look.timersAreDue || run.hasJustFiredTimers ? modes[run.mode].ready.count : 0
        }
        if left > 0, let first = modes[run.mode].takeFirst(&look.candidate, unless: mainQueue?.source, &seats) {
            look.left = left - 1
            look.source = seats.list[first.seat].source
            return (first.isPresumed, .ask)
        }
        look.left = 0
        if look.timersAreDue { return (false, .timers) }
        look.plan = waitPlan(run)
        return (false, .nothing)
    }

    /// Records that the source that was checked is not ready.
    private mutating func dismiss(_ look: inout ReadyScan, in mode: Int) {
        guard var candidate = look.candidate, candidate.isPresumed, let source = look.source,
            seats.seat(of: source, in: mode, near: candidate.seat) == candidate.seat
        else { return }
        modes[mode].ready.retract(&candidate, &seats)
    }

    /// Records that the source that was checked is ready.
    ///
    /// - Parameters:
    ///   - look: the scan; its registration index is corrected when the source has left the mode and come back.
    ///   - mode: the run's mode.
    ///   - mayBegin: whether to perform it at once, if there is no observer to notify of the end of the wait.
    /// - Returns: what becomes of it.
    mutating func accept(_ look: inout ReadyScan, in mode: Int, mayBegin: Bool) -> ReadyAnswer {
        guard let source = look.source, var candidate = look.candidate else { return .gone }
        look.candidate = nil
        guard let number = seats.seat(of: source, in: mode, near: candidate.seat) else { return .gone }
        candidate.seat = number
        if candidate.isPresumed { modes[mode].ready.retract(&candidate, &seats) }
        look.candidate = candidate
        if candidate.watch != nil { modes[mode].recentReports.note(number) }
        let isMainQueue = mainQueue?.source == source.id
        guard mayBegin, !isMainQueue, modes[mode].observers.isEmpty else {
            modes[mode].ready.putBack(candidate, &seats)
            return isMainQueue ? .mainQueue : .isListed
        }
        modes[mode].ready.takeForPerform(candidate, &seats)
        return .begins
    }
}

extension ModeState {
    /// Removes the first source from the ready list. Unless that takes another access to the state, it also does in
    /// advance what `accept` will do, which is right if the source is ready and the state does not change in between.
    ///
    /// - Parameters:
    ///   - candidate: what was known of the source.
    ///   - mainQueue: the main queue's source, which is not performed.
    ///   - seats: the registration table.
    /// - Returns: its registration, and whether it was accepted in advance; nil when the list is empty.
    fileprivate mutating func takeFirst(
        _ candidate: inout ReadyQueue.Candidate?, unless mainQueue: ItemID?, _ seats: inout RegistrationTable
    ) -> (seat: RegistrationIndex, isPresumed: Bool)? {
        guard var first = ready.takeFirst(&seats) else { return nil }
        if observers.isEmpty, first.watch == nil || recentReports.seats.last == first.seat,
            mainQueue == nil || seats.list[first.seat].source?.id != mainQueue
        {
            ready.presume(&first, &seats)
        }
        candidate = first
        return (first.seat, first.isPresumed)
    }
}
