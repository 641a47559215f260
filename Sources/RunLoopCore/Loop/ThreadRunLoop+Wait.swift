// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Step 7 of a pass: how a loop gets its next event, and how it sleeps.
//
// One event per pass: all timers that are due, or one port-based source, or nothing. Timers go first, but not twice in
// a row while a source is ready, so neither starves the other. Sources that were signalled cost no system call. The
// loop polls the kernel for descriptors when nothing else is ready, and after 128 events or 2 ms without a poll.
//
// The rule for the timeout of a wait: zero when the pass polls, was woken, or has anything pending (a stop, a block, a
// signalled source, a condition that is false, an empty mode); else until the run's deadline or the date at which a
// timer of the mode needs the loop, whichever comes first; without limit when there is neither.

import PortSystem
import Synchronization

/// What a wait ended with.
enum LoopEvent {
    case nothing
    case timers
    case mainQueue
    /// A port-based source, its last index in the registration table, and whether its perform has begun: then nothing
    /// may be called before it.
    case source(RunLoopSource, near: RegistrationIndex, hasBegun: Bool)
}

extension ThreadRunLoop {
    /// Waits for the next event of a run.
    func waitForEvent(_ run: inout LoopRun, polls: Bool, while condition: () -> Bool) -> LoopEvent {
        isAsleep.store(true, ordering: .releasing)
        defer { isAsleep.store(false, ordering: .releasing) }
        // From here on a thread with work for the loop ends its wait; after that the loop checks its state.
        var mustNotSleep = polls || !doorbell.willWait()
        defer { doorbell.didWake() }
        var wait = PresentWait()
        while true {
            let now = MonotonicInstant.now
            if run.isLookDue(at: now) {
                look(&run, until: .distantPast)
                _ = takeInKept()
                wait.hasLooked = true
            }
            var plan = WaitPlan.none
            if let event = readyEvent(&run, at: now, &plan) {
                run.eventsSinceLook += 1
                run.didWait(wait, until: now)
                return event
            }
            if !wait.hasTakenIn, takeInKept() {
                wait.hasTakenIn = true
                continue
            }
            if !mustNotSleep {
                mustNotSleep = doorbell.isRung || run.isConditional && !condition()
            }
            if mustNotSleep { plan = .none }
            if wait.hasLooked && plan.limit <= now {
                run.didWait(wait, until: now)
                return .nothing
            }
            if plan.limit > now {
                if wait.start == nil {
                    wait.start = now
                    waitFallsIdle(&run)
                }
                if wait.spin == .none, spin(&run, plan, &wait, from: now) { continue }
                if wait.spin == .paid { wait.spin = .failed }
            }
            let limit = plan.limit > now ? plan.limit : .distantPast
            if look(&run, until: limit, watchesNothing: plan.watchesNothing) { wait.hasLooked = true }
        }
    }

    /// An event that is ready without a system call.
    ///
    /// Finds the first port-based source that is ready now; sources before it that are not ready leave the ready list.
    /// Each is checked once: one that is signalled again meanwhile, even by its own check, waits for the next scan, so
    /// that a run notices its limit, stops and timers.
    ///
    /// - Parameters:
    ///   - run: the run.
    ///   - now: the present moment.
    ///   - plan: set when there is no event: how the run may wait then.
    /// - Returns: the event; nil when there is none.
    private func readyEvent(_ run: inout LoopRun, at now: MonotonicInstant, _ plan: inout WaitPlan) -> LoopEvent? {
        var look = ReadyScan()
        while true {
            switch state.find(.mayPerform, { $0.next(&look, run, at: now) }) {
            case .ask:
                guard let source = look.source else { continue }
                // Clear the mark first, then check: a signal after the check puts the source back on the list.
                source.isRung.store(false, ordering: .sequentiallyConsistent)
                guard source.isReady(look.candidate?.watch, turn: turnCount, polls: run.polls) else { continue }
                let answer = accept(&look, run)
                if answer == .gone { continue }
                run.hasJustFiredTimers = false
                if answer == .mainQueue { return .mainQueue }
                if answer == .begins { performing.begin(source) }
                return .source(source, near: look.candidate?.seat ?? 0, hasBegun: answer == .begins)
            case .timers:
                run.hasJustFiredTimers = true
                return .timers
            case .nothing:
                run.hasJustFiredTimers = false
                plan = look.plan
                return nil
            }
        }
    }

    /// Records that the source that was checked is ready. When no thread has locked the loop's state since the source
    /// left the list, what `next` has assumed holds.
    private func accept(_ look: inout ReadyScan, _ run: LoopRun) -> ReadyAnswer {
        let mayBegin = !isInstrumented.load(ordering: .relaxed)
        if mayBegin, state.holds(.mayPerform) { return .begins }
        return state.withLock { $0.accept(&look, in: run.mode, mayBegin: mayBegin) }
    }

    /// Waits in the kernel, or only polls it when the deadline is past, and puts reported sources on the ready list.
    ///
    /// This is the only function in which a loop sleeps: where descriptors are watched, until one of them or the event
    /// descriptor is ready; otherwise on the futex.
    ///
    /// - Parameters:
    ///   - run: the run.
    ///   - deadline: when to return at the latest.
    ///   - watchesNothing: no descriptor was watched when the loop announced its wait. The first one that is added
    ///     wakes it.
    /// - Returns: whether the kernel was polled: false when something had arrived in memory that the loop polls.
    @discardableResult
    func look(_ run: inout LoopRun, until deadline: MonotonicInstant, watchesNothing: Bool = false) -> Bool {
        let set = watchesNothing ? nil : state.withLock { $0.modes[run.mode].descriptors }
        if deadline != .distantPast {
            if let set, let hasAsked = sleepParked(run, set, until: deadline) {
                if hasAsked { run.didLook() }
                return hasAsked
            }
            stopLooking()
        }
        run.didLook()
        if let set {
            let sleeps = deadline != .distantPast && doorbell.willSleep()
            counts.didLook(sleeping: sleeps)
            wait(set, run, until: sleeps ? deadline : .distantPast)
        } else if deadline != .distantPast, let ticket = doorbell.willDoze() {
            counts.didLook(sleeping: true)
            doorbell.doze(ticket, until: deadline)
        }
        return true
    }

    /// Waits for descriptors, and puts reported sources on the ready list.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    func wait(_ set: DescriptorSet, _ run: LoopRun, until deadline: MonotonicInstant) -> Bool {
        let (mode, report) = (run.mode, turnCount)
        var hasReport = false
        set.wait(until: deadline) { sources in
            hasReport = true
            lookout.isStale = true
            state.withLock { state in
                sources.forEach { state.noteReport(of: $0, in: mode, turn: report) }
            }
        }
        return hasReport
    }
}

extension LoopEvent {
    /// Whether its handling has begun.
    var hasBegun: Bool {
        if case .source(_, _, hasBegun: true) = self { true } else { false }
    }
}

extension RunLoopSource {
    /// Whether the source is ready: its check says so, or the kernel reported its descriptor in this very pass. An
    /// older report is confirmed by a poll, unless performing the source finds that out itself. A run that polls has
    /// only one pass, which must go to a source that is really ready, so it always confirms an older report.
    func isReady(_ watch: RegistrationWatch?, turn: Int, polls: Bool) -> Bool {
        if routine.isReady() { return true }
        guard let watch else { return false }
        if watch.report == turn || watch.report != nil && !polls && routine.looksWhenPerformed { return true }
        do throws(SystemError) {
            return !(try sysPoll(watch.descriptor, .readable, until: .distantPast)).isEmpty
        } catch {
            return true
        }
    }
}
