// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The operations on a loop's state that a message costs. A hint is a cached index, whose registration may be another
// source's by now.

extension RunLoopState {
    /// Lists a port-based source as possibly ready in each mode that it is in.
    ///
    /// - Returns: whether a sleeping loop must be woken for it.
    mutating func noteRing(of source: RunLoopSource, near hint: RegistrationIndex) -> Bool {
        guard let first = seats.seat(of: source, near: hint) else { return false }
        let order = source.order
        var mustWake = false
        var number = first
        repeat {
            let mode = Int(seats.list[number].mode)
            modeSteps += 1
            modes[mode].ready.insert(number, order: order, &seats)
            if isRunning(in: mode) { mustWake = true }
            number = Int(seats.list[number].next)
        } while number != first
        return mustWake
    }

    /// Records that the kernel has reported a source's descriptor.
    mutating func noteReport(of source: RunLoopSource, in mode: Int, turn: Int) {
        guard let number = seats.seat(of: source.id, in: mode) else { return }
        modes[mode].ready.insert(number, order: source.order, report: turn, &seats)
    }

    /// Removes a port-based source from the ready list to perform it.
    ///
    /// - Returns: false when it is no longer there.
    mutating func takeForPerform(_ source: RunLoopSource, in mode: Int, near hint: RegistrationIndex) -> Bool {
        guard let number = seats.seat(of: source, in: mode, near: hint) else { return false }
        return modes[mode].ready.takeForPerform(number, &seats)
    }

    /// Whether a pass in the mode would find nothing in its first steps: no observer, no block, no signalled source.
    func isQuiet(_ mode: Int) -> Bool {
        blocks.isEmpty && modes[mode].signalled.isEmpty && modes[mode].observers.isEmpty
    }

    /// Whether a pass can end without another check: no block waits, and the run is either conditional, or was not
    /// stopped and has something to wait for.
    func isPlain(_ run: LoopRun) -> Bool {
        blocks.isEmpty && (run.isConditional || !isStopped && !isEmpty(run.mode))
    }

    /// Whether a port-based source that is being performed, and has more, is all that the next pass would find. If it
    /// is on the ready list, it is removed.
    mutating func goesOn(with source: RunLoopSource, in mode: Int, near hint: RegistrationIndex) -> Bool {
        if isStopped || !isQuiet(mode) || modes[mode].timers.isDue(at: .now) { return false }
        guard let number = seats.seat(of: source, in: mode, near: hint) else { return false }
        guard let first = modes[mode].ready.first else { return true }
        return first == number && modes[mode].ready.takeForPerform(number, &seats)
    }
}
