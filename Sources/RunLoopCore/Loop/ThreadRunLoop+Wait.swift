// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// Step 7 of a pass: how a loop gets its next event, and how it sleeps.
//
// One event per pass: all timers that are due, or one port-based source, or nothing. Timers go first, but not twice in
// a row while a source is ready, so neither starves the other. Sources that were signalled cost no system call. The
// loop polls the kernel for descriptors when nothing else is ready, and after 128 events or 2 ms without a poll.
//
// The rule for the timeout of a wait: zero when the pass polls, was woken, or has anything pending (a stop, a block, a
// signalled source, a condition that is false, an empty mode); else until the run's deadline or the date at which a
// timer of the mode needs the loop, whichever comes first; without limit when there is neither.

/// What a wait ended with.
enum LoopEvent {
    case nothing
    case timers
    case mainQueue
    /// A port-based source, its last index in the registration table, and whether its perform has begun: then nothing
    /// may be called before it.
    case source(RunLoopSource, near: RegistrationIndex, hasBegun: Bool)

    /// Whether its handling has begun.
    var hasBegun: Bool {
        if case .source(_, _, hasBegun: true) = self { true } else { false }
    }
}

extension ThreadRunLoop {
    func waitForEvent(_ run: inout LoopRun, polls: Bool, while condition: () -> Bool) -> LoopEvent {
        isAsleep.store(true, ordering: .releasing)
        defer { isAsleep.store(false, ordering: .releasing) }
        // From here on a thread with work for the loop ends its wait; after that the loop checks its state.
        var mustNotSleep = polls || !parker.willWait()
        defer { parker.didWake() }
        var wait = LoopWait()
        while true {
            let now = MonotonicInstant.now
            if run.isPollDue(at: now) {
                poll(&run, until: .distantPast)
                _ = receivePolledArrivals()
                wait.hasPolled = true
            }
            var plan = WaitPlan.none
            if let event = readyEvent(&run, at: now, &plan) {
                run.eventsSincePoll += 1
                run.didWait(wait, until: now)
                return event
            }
            if !wait.hasReceivedArrivals, receivePolledArrivals() {
                wait.hasReceivedArrivals = true
                continue
            }
            if !mustNotSleep {
                mustNotSleep = parker.isNotified || run.isConditional && !condition()
            }
            if mustNotSleep { plan = .none }
            if wait.hasPolled && plan.limit <= now {
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
            if poll(&run, until: limit, watchesNothing: plan.watchesNothing) { wait.hasPolled = true }
        }
    }

    /// An event that is ready without a system call.
    ///
    /// Finds the first port-based source that is ready now; sources before it that are not ready leave the ready list.
    /// Each is checked once: one that is signalled again meanwhile, even by its own check, waits for the next scan, so
    /// that a run notices its limit, stops and timers.
    ///
    /// - Returns: the event; nil when there is none: the plan is then set to how the run may wait.
    private func readyEvent(_ run: inout LoopRun, at now: MonotonicInstant, _ plan: inout WaitPlan) -> LoopEvent? {
        var scan = ReadyScan()
        while true {
            switch state.find(.mayPerform, { $0.next(&scan, run, at: now) }) {
            case .check:
                guard let source = scan.source else { continue }
                // Clear the mark first, then check: a signal after the check puts the source back on the list.
                source.isNotified.store(false, ordering: .sequentiallyConsistent)
                guard source.isReady(scan.candidate?.descriptor, pass: passCount, polls: run.polls) else { continue }
                let answer = accept(&scan, run)
                if answer == .gone { continue }
                run.hasJustFiredTimers = false
                if answer == .mainQueue { return .mainQueue }
                if answer == .begins { threadState.beginPerform(source) }
                return .source(source, near: scan.candidate?.registration ?? 0, hasBegun: answer == .begins)
            case .timers:
                run.hasJustFiredTimers = true
                return .timers
            case .nothing:
                run.hasJustFiredTimers = false
                plan = scan.plan
                return nil
            }
        }
    }

    /// Records that the source that was checked is ready. When no thread has locked the loop's state since the source
    /// left the list, what `next` has assumed holds.
    private func accept(_ scan: inout ReadyScan, _ run: LoopRun) -> ReadyOutcome {
        let mayBegin = !isInstrumented.load(ordering: .relaxed)
        if mayBegin, state.holds(.mayPerform) { return .begins }
        return state.withLock { $0.accept(&scan, in: run.mode, mayBegin: mayBegin) }
    }

    /// Waits in the kernel, or only polls it when the deadline is past, and puts reported sources on the ready list.
    ///
    /// Here a loop sleeps, unless it polls memory: where descriptors are watched, until one of them or the event
    /// descriptor is ready; otherwise on the futex. One that polls memory sleeps in `sleepParked`. When no descriptor
    /// was watched as the loop announced its wait, the first one that is added wakes it.
    ///
    /// - Returns: whether the kernel was polled: false when something had arrived in memory that the loop polls.
    @discardableResult
    func poll(_ run: inout LoopRun, until deadline: MonotonicInstant, watchesNothing: Bool = false) -> Bool {
        let set = watchesNothing ? nil : state.withLock { $0.modes[run.mode].descriptors }
        if deadline != .distantPast {
            if let set, let hasPolledKernel = sleepParked(run, set, until: deadline) {
                if hasPolledKernel { run.didPoll() }
                return hasPolledKernel
            }
            endBusyPolling()
        }
        run.didPoll()
        if let set {
            let sleeps = deadline != .distantPast && parker.willSleep()
            counts.didPoll(sleeping: sleeps)
            wait(set, run, until: sleeps ? deadline : .distantPast)
        } else if deadline != .distantPast, let expected = parker.willSleepOnFutex() {
            counts.didPoll(sleeping: true)
            parker.sleepOnFutex(expected, until: deadline)
        }
        return true
    }

    /// Waits for descriptors, and puts reported sources on the ready list.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    func wait(_ set: DescriptorSet, _ run: LoopRun, until deadline: MonotonicInstant) -> Bool {
        let (mode, report) = (run.mode, passCount)
        var hasReport = false
        set.wait(until: deadline) { sources in
            hasReport = true
            threadState.busyPollsAreStale = true
            parker.forgetWaker()
            state.withLock { state in
                sources.forEach { state.noteReport(of: $0, in: mode, pass: report) }
            }
        }
        return hasReport
    }
}

// MARK: - Spin

// Before a loop sleeps it may spin: poll again and again whether it was woken, which needs no system call on either
// side, and now and then whether a descriptor is ready. The thread that is to answer may wait for this very processor:
// when it ran here last, an adaptive loop yields at each poll, and otherwise now and then, as it may have been moved
// here. The kernel, with two threads to run, then moves one of them to another processor, if there is one. See
// `WaitStrategy`.
extension ThreadRunLoop {
    /// How the loop waits; `.adaptive` unless set, here or by `PORT_WAIT` in the environment (`adaptive`, `blocking`,
    /// `spinning`: for 100 µs). A new value counts from the next wait on.
    ///
    /// - Important: Thread safety: any thread.
    public var waitStrategy: WaitStrategy {
        get { state.withLock { $0.waitStrategy } }
        set { state.withLock { $0.waitStrategy = newValue } }
    }

    /// How often the loop has slept and spun.
    ///
    /// - Important: Thread safety: any thread. While the loop runs, the numbers may be of slightly different moments.
    public var waitCounts: WaitCounts { counts.waits }

    /// Spins as long as the plan allows, unless it is not worth it.
    ///
    /// - Returns: whether the loop must check for an event again: it was woken, a descriptor is ready, or the wait is
    ///   over.
    func spin(_ run: inout LoopRun, _ plan: WaitPlan, _ wait: inout LoopWait, from now: MonotonicInstant) -> Bool {
        if plan.spin <= .zero { return false }
        let isAllowed = !plan.isConsiderate || processors.allowsSpinning(at: now)
        if plan.isConsiderate, isProducerHere(threadState.busyPolls) {
            if !state.withLock({ $0.modes[run.mode].spins.mayYield(toPeer: true, at: now) }) { return false }
        } else if !isAllowed {
            return false
        }
        let end = min(plan.limit, now.advanced(by: plan.spin))
        let hasArrival = spin(&run, &wait, from: now, until: end, yields: plan.isConsiderate, onlyYields: !isAllowed)
        let paid = hasArrival || end == plan.limit && wait.lostTime == nil && .now >= end
        wait.spin = paid ? .paid : .failed
        counts.didSpin(paid: paid)
        return paid
    }

    /// Spins until something has arrived, the time is over, or another thread has had the processor. One that `yields`
    /// yields the processor: at each poll to a producer that ran here last, and otherwise now and then. One that
    /// `onlyYields` ends when no producer is here.
    ///
    /// - Returns: whether something has arrived; false also when it arrived while another thread had the processor, so
    ///   that such spins become rare.
    private func spin(
        _ run: inout LoopRun, _ wait: inout LoopWait, from start: MonotonicInstant, until end: MonotonicInstant,
        yields: Bool, onlyYields: Bool
    ) -> Bool {
        let entries = beginBusyPolling(in: run.mode)
        defer { endWait(at: entries) }
        let (hasDescriptors, mayYield) = state.withLock { state in
            (
                state.modes[run.mode].descriptors != nil,
                yields && state.modes[run.mode].spins.mayYield(toPeer: false, at: start)
            )
        }
        var nextPoll = start.advanced(by: Tuning.timeBetweenCalls)
        var nextYield = mayYield ? nextPoll : .distantFuture
        while true {
            let isProducerHere = yields && isProducerHere(entries)
            if hasArrival(at: entries, attempts: isProducerHere ? 1 : Tuning.pollsBetweenTimes) { return true }
            let now = MonotonicInstant.now
            if now >= end || onlyYields && !isProducerHere { return false }
            if hasDescriptors, now >= nextPoll {
                poll(&run, until: .distantPast)
                if state.withLock({ !$0.modes[run.mode].ready.isEmpty }) { return true }
                nextPoll = now.advanced(by: Tuning.timeBetweenCalls)
            }
            if isProducerHere || now >= nextYield {
                sysYield()
                let time = now.duration(to: .now)
                if SpinPredictor.isLost(time) {
                    wait.lostTime = time
                    return false
                }
                if mayYield { nextYield = .after(Tuning.timeBetweenCalls) }
            }
        }
    }

    /// Whether a thread that may end the wait ran on this thread's processor when it last did so: then it can hardly do
    /// so again before this thread yields. Without memory to poll that is the thread that woke the loop last.
    private func isProducerHere(_ entries: SmallList<BusyPollEntry>) -> Bool {
        let processor = sysProcessor()
        if processor == 0 { return false }
        if let entry = entries.only { return entry.pollable.producerProcessor == processor }
        if entries.isEmpty { return parker.wakerProcessor == processor }
        return entries.contains { $0.pollable.producerProcessor == processor }
    }

    /// Polls up to `attempts` times whether something has arrived.
    private func hasArrival(at entries: SmallList<BusyPollEntry>, attempts: Int) -> Bool {
        // Mostly there is one entry. It has a loop of its own, so that no poll counts references.
        if let entry = entries.only { return hasArrival(at: entry.pollable, attempts: attempts) }
        for _ in 0..<attempts {
            if parker.isNotified || entries.contains(where: { $0.pollable.hasArrived && $0.pollable.receiveArrivals() })
            {
                return true
            }
            sysPause()
        }
        return false
    }

    private func hasArrival(at pollable: any BusyPollable, attempts: Int) -> Bool {
        for _ in 0..<attempts {
            if parker.isNotified || pollable.hasArrived && pollable.receiveArrivals() { return true }
            sysPause()
        }
        return false
    }
}

// MARK: - Park

// A loop that polls memory of other processes parks there before it sleeps: its peers then wake it through a wake
// channel, which the loop's set watches beside its other descriptors. That is one system call on each side, and nothing
// is read.
extension ThreadRunLoop {
    /// Sleeps until a descriptor is ready, the loop is woken, the deadline has passed, or something was received from
    /// memory of other processes; and notes what the kernel has reported.
    ///
    /// - Returns: whether the kernel was polled for descriptors: false when something had arrived before; nil, without
    ///   a sleep, when there is no such memory.
    func sleepParked(_ run: LoopRun, _ set: DescriptorSet, until deadline: MonotonicInstant) -> Bool? {
        let entries = entriesToPark(in: run.mode, set)
        if entries.isEmpty { return nil }
        defer { endWait(at: entries) }
        while true {
            let sleeps = park(at: entries) && parker.willSleep()
            var hasReport = false
            if sleeps {
                counts.didPoll(sleeping: true)
                hasReport = wait(set, run, until: deadline)
                parker.didSleep()
            }
            for entry in entries { entry.pollable.unpark(entry.period) }
            var isWithinMessage = false
            for entry in entries where entry.pollable.hasArrived {
                entry.pollable.wakeChannel?.didArrive()
                if !entry.pollable.receiveArrivals() { isWithinMessage = true }
            }
            // Unless the rest of a message is still to come: an entry may have ended or lost its channel, and must be
            // released.
            guard isWithinMessage, sleeps, !hasReport, !parker.isNotified, deadline > .now,
                areReported(entries, by: set)
            else { return sleeps }
        }
    }

    /// The entries that the loop polls and whose arrivals the set reports. The loop stops polling the others.
    private func entriesToPark(in mode: Int, _ set: DescriptorSet) -> SmallList<BusyPollEntry> {
        let entries = beginBusyPolling(in: mode)
        if areReported(entries, by: set) { return entries }
        var reported = SmallList<BusyPollEntry>()
        for entry in entries {
            if entry.pollable.wakeChannel?.join(set) == true {
                reported.append(entry)
            } else {
                entry.pollable.endBusyPolling(entry.period)
            }
        }
        threadState.busyPolls = reported
        threadState.busyPollsAreStale = true
        return reported
    }

    /// Whether edges of all entries' channels end the waits of a set.
    private func areReported(_ entries: SmallList<BusyPollEntry>, by set: DescriptorSet) -> Bool {
        entries.allSatisfy { $0.pollable.wakeChannel?.join(set) == true }
    }

    /// - Returns: whether the loop is parked at all entries; otherwise something has arrived, or an entry has ended and
    ///   must be released.
    private func park(at entries: SmallList<BusyPollEntry>) -> Bool {
        entries.allSatisfy { $0.pollable.park($0.period) }
    }
}
