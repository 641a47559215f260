// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Before a loop sleeps it may spin: look again and again whether it was rung, which needs no system call on either side,
// and now and then whether a descriptor is ready. See `WaitStrategy`.

import PortSystem
import Synchronization

/// How long a wait may take, and how much of it may be spent spinning.
struct WaitPlan: Sendable {
    var limit: MonotonicInstant
    var spin = Duration.zero
    /// Whether to spin only where that leaves a processor to others.
    var needsProcessors = false

    static let none = WaitPlan(limit: .distantPast)
}

/// What a wait has done so far.
struct PresentWait {
    /// When it found nothing; nil when it found something at once.
    var start: MonotonicInstant?
    var spin = SpinPredictor.Spin.none
    var hasLooked = false
}

extension ThreadRunLoop {
    private static let timeBetweenSpinningLooks = Duration.microseconds(5)

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
    /// - Returns: whether the loop has to look for an event again: it was rung, a descriptor is ready, or the wait is over.
    func spin(_ run: inout LoopRun, _ plan: WaitPlan, _ wait: inout PresentWait, from now: MonotonicInstant) -> Bool {
        if plan.spin <= .zero || plan.needsProcessors && !processors.allowsSpinning(at: now) { return false }
        let end = min(plan.limit, now.advanced(by: plan.spin))
        let paid = spin(&run, until: end) || end == plan.limit
        wait.spin = paid ? .paid : .failed
        counts.didSpin(paid: paid)
        return paid
    }

    private func spin(_ run: inout LoopRun, until end: MonotonicInstant) -> Bool {
        let places = beginLooking(in: run.mode)
        defer { for place in places { place.endLooking() } }
        let hasDescriptors = state.withLock { $0.modes[run.mode].descriptors != nil }
        var nextLook = MonotonicInstant.after(Self.timeBetweenSpinningLooks)
        while true {
            for _ in 0..<16 {
                if doorbell.isRung { return true }
                for place in places where place.hasArrived && place.takeIn() { return true }
                sysPause()
            }
            let now = MonotonicInstant.now
            if now >= end { return false }
            if hasDescriptors, now >= nextLook {
                look(&run, until: .distantPast)
                if state.withLock({ !$0.modes[run.mode].ready.isEmpty }) { return true }
                nextLook = now.advanced(by: Self.timeBetweenSpinningLooks)
            }
        }
    }

    /// Learns from a wait that has ended.
    func didWait(_ wait: PresentWait, in mode: Int, until now: MonotonicInstant) {
        guard let start = wait.start else { return }
        state.withLock { $0.modes[mode].spins.didWait(start.duration(to: now), wait.spin) }
    }
}

extension RunLoopState {
    /// How a run may wait; not at all when something is there already.
    func waitPlan(_ run: LoopRun) -> WaitPlan {
        if !modes[run.mode].signalled.isEmpty || !modes[run.mode].ready.isEmpty { return .none }
        if hasBlock(for: run.mode) { return .none }
        if !run.isConditional, isStopped || isEmpty(run.mode) { return .none }
        let limit = min(run.deadline, modes[run.mode].timers.wakeDate ?? .distantFuture)
        switch waitStrategy {
        case .blocking: return WaitPlan(limit: limit)
        case .spinning(let duration): return WaitPlan(limit: limit, spin: duration)
        case .adaptive:
            let spins = modes[run.mode].spins.expectsShortWait
            return WaitPlan(limit: limit, spin: spins ? SpinPredictor.limit : .zero, needsProcessors: true)
        }
    }
}
