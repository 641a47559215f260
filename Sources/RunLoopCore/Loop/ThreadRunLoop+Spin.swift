// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Before a loop sleeps it may spin: poll again and again whether it was woken, which needs no system call on either
// side, and now and then whether a descriptor is ready. The thread that is to answer may wait for this very processor,
// so an adaptive loop yields now and then: the kernel, with two threads to run, then moves one of them to another
// processor. See `WaitStrategy`.

import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// How many polls a spin makes between two readings of the clock: about half a microsecond.
    private static let looksBetweenTimes = 16

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
    func spin(_ run: inout LoopRun, _ plan: WaitPlan, _ wait: inout PresentWait, from now: MonotonicInstant) -> Bool {
        if plan.spin <= .zero || plan.isConsiderate && !processors.allowsSpinning(at: now) { return false }
        let end = min(plan.limit, now.advanced(by: plan.spin))
        let hasCome = spin(&run, &wait, from: now, until: end, yields: plan.isConsiderate)
        let paid = hasCome || end == plan.limit && !wait.yield.isLost
        wait.spin = paid ? .paid : .failed
        counts.didSpin(paid: paid)
        return paid
    }

    /// Spins until something has arrived, the time is over, or another thread has had the processor.
    ///
    /// - Returns: whether something has arrived; false also when it arrived while another thread had the processor, so
    ///   that such spins become rare.
    private func spin(
        _ run: inout LoopRun, _ wait: inout PresentWait, from start: MonotonicInstant, until end: MonotonicInstant,
        yields: Bool
    ) -> Bool {
        let places = lookOut(in: run.mode)
        defer { endWait(at: places) }
        let (hasDescriptors, firstYield) = state.withLock { state in
            (state.modes[run.mode].descriptors != nil, yields ? state.modes[run.mode].spins.firstYield(at: start) : nil)
        }
        var nextYield = firstYield.map { start.advanced(by: $0) } ?? .distantFuture
        var looks = firstYield == .zero ? 1 : Self.looksBetweenTimes
        var nextLook = start.advanced(by: SpinPredictor.timeBetweenCalls)
        while true {
            if hasCome(at: places, looks: looks) { return true }
            looks = Self.looksBetweenTimes
            let now = MonotonicInstant.now
            if now >= end { return false }
            if hasDescriptors, now >= nextLook {
                look(&run, until: .distantPast)
                if state.withLock({ !$0.modes[run.mode].ready.isEmpty }) { return true }
                nextLook = now.advanced(by: SpinPredictor.timeBetweenCalls)
            }
            if now >= nextYield {
                sysYield()
                wait.yield = .init(lasting: now.duration(to: .now), hasPaid: hasCome(at: places, looks: 1))
                if wait.yield == .paid { return true }
                if wait.yield.isLost { return false }
                nextYield = .after(SpinPredictor.timeBetweenCalls)
            }
        }
    }

    /// Polls up to `looks` times whether something has arrived.
    private func hasCome(at places: SmallList<BusyPollEntry>, looks: Int) -> Bool {
        // Mostly there is one entry. It has a loop of its own, so that no poll counts references.
        if case .one(let looked) = places { return hasCome(at: looked.place, looks: looks) }
        for _ in 0..<looks {
            if doorbell.isRung || places.contains(where: { $0.place.hasArrived && $0.place.takeIn() }) { return true }
            sysPause()
        }
        return false
    }

    private func hasCome(at place: any BusyPollable, looks: Int) -> Bool {
        for _ in 0..<looks {
            if doorbell.isRung || place.hasArrived && place.takeIn() { return true }
            sysPause()
        }
        return false
    }
}

extension LoopRun {
    /// Stores what its mode will learn from a wait that has ended.
    mutating func didWait(_ wait: PresentWait, until now: MonotonicInstant) {
        if let start = wait.start { pastWait = PastWait(start: start, end: now, spin: wait.spin, yield: wait.yield) }
    }
}

extension RunLoopState {
    /// How a run may wait; not at all when something is ready already.
    func waitPlan(_ run: LoopRun) -> WaitPlan {
        if !modes[run.mode].signalled.isEmpty || !modes[run.mode].ready.isEmpty { return .none }
        if hasBlock(for: run.mode) { return .none }
        if !run.isConditional, isStopped || isEmpty(run.mode) { return .none }
        let limit = min(run.deadline, modes[run.mode].timers.wakeDate ?? .distantFuture)
        var plan = WaitPlan(limit: limit, watchesNothing: modes[run.mode].descriptors == nil)
        switch waitStrategy {
        case .blocking: break
        case .spinning(let duration): plan.spin = duration
        case .adaptive:
            if modes[run.mode].spins.expectsShortWait { plan.spin = SpinPredictor.limit }
            plan.isConsiderate = true
        }
        return plan
    }

    /// Lets a mode learn from a wait that has ended.
    mutating func learn(from wait: PastWait, in mode: Int) {
        modes[mode].spins.didWait(wait.start.duration(to: wait.end), wait.spin)
        modes[mode].spins.didYield(wait.yield, until: wait.end)
    }
}
