// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// How a wait looks for what is there already: one look at the loop's state for each source that may be ready, and one
// when there is none, which says how the loop may wait.

import PortSystem

/// A look for an event, in steps: between two of them a source is asked whether it is ready.
struct ReadyScan {
    /// What to do next.
    enum Step {
        /// Ask the source whether it is ready; it is off the ready list now.
        case ask
        /// Timers are due, and it is their turn.
        case timers
        /// Nothing is there: wait as planned.
        case nothing
    }

    /// The source that is to be asked, and what was known of it.
    fileprivate(set) var source: RunLoopSource?
    fileprivate(set) var candidate: ReadyQueue.Candidate?
    /// How to wait, when nothing is there.
    fileprivate(set) var plan = WaitPlan.none
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
    /// It is the main queue, and back there.
    case mainQueue
    /// It is to be performed: nobody has to be told anything before.
    case begins
}

extension RunLoopState {
    /// The next step of a look; the source that is to be asked is off the list.
    ///
    /// - Returns: whether the source, if it is ready, may be performed without another look at the state; the step.
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

    /// Takes note that the source that was asked is not ready.
    private mutating func dismiss(_ look: inout ReadyScan, in mode: Int) {
        guard var candidate = look.candidate, candidate.isPresumed, let source = look.source,
            seats.seat(of: source, in: mode, near: candidate.seat) == candidate.seat
        else { return }
        modes[mode].ready.retract(&candidate, &seats)
    }

    /// Takes note that the source that was asked is ready.
    ///
    /// - Parameters:
    ///   - look: the look; the number of the source's seat is corrected when it has left the mode and come back.
    ///   - mode: the run's mode.
    ///   - mayBegin: whether it is to be performed at once, if no observer has to be told of the end of the wait.
    /// - Returns: where it is now.
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
    /// Takes the first source off the ready list, and does for it what `accept` would do if it is ready and nobody comes
    /// between, unless that takes another look.
    ///
    /// - Parameters:
    ///   - candidate: what was known of the source.
    ///   - mainQueue: the main queue's source, which is not performed.
    ///   - seats: the seats.
    /// - Returns: its seat, and whether that was done; nil when there was none.
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
