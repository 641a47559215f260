// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// A stall monitor's state of its loop: plain values, which change under the lock of `StallRecord`.
//
//   idle      the loop sleeps, or does not run
//   busy      it runs since that moment; a wait that found something to do at once does not change that
//   reported  it has been busy for too long, and that was reported; the end will be reported too
//
// The monitor's thread is `armed` when it has a date for its next check. The loop wakes it when the loop becomes busy
// and the thread is not armed, and when a stall that was reported is over. A check that finds that the loop was not
// busy since the last one disarms the thread, so an idle loop causes no wake-ups; one that works all the time causes
// about one per threshold.

/// How long a loop has been busy, and with what.
struct StallState: Sendable {
    private struct OpenCallout: Sendable {
        var span: UInt64
        var callout: RunLoopCallout
        var mode: RunLoopMode
        /// When it began, or when the loop became busy after that.
        var since: MonotonicInstant
        /// How long callouts inside it have taken since then.
        var inner: Duration = .zero
    }

    private enum Phase: Equatable {
        case idle
        case busy(since: MonotonicInstant)
        case reported(since: MonotonicInstant)
    }

    private typealias CalloutDuration = (callout: RunLoopCallout, mode: RunLoopMode, duration: Duration)

    let threadID: Int32
    let threshold: Duration
    private var phase = Phase.idle
    private var open: [OpenCallout] = []
    private var longest: CalloutDuration?
    private var calloutCount = 0
    private var isArmed = false
    private var wasBusy = false
    /// The stalls that are over and whose end was not yet reported.
    private var over: [RunLoopStall] = []

    /// Whether nothing is in progress and nothing is left to report.
    var isIdle: Bool { phase == .idle && over.isEmpty && !isArmed }

    init(threadID: Int32, threshold: Duration) {
        self.threadID = threadID
        self.threshold = threshold
        open.reserveCapacity(16)
    }

    /// Records what the loop does.
    ///
    /// - Returns: whether the monitor's thread must check.
    mutating func note(_ event: RunLoopTraceEvent) -> Bool {
        switch event.kind {
        case .runBegin, .waitEnd(_, slept: true): return becomeBusy(at: event.time)
        case .activity, .waitBegin, .waitEnd: return false
        case .calloutBegin(let callout):
            let mustCheck = becomeBusy(at: event.time)
            calloutCount += 1
            open.append(OpenCallout(span: event.span, callout: callout, mode: event.mode, since: event.time))
            return mustCheck
        case .calloutEnd:
            end(event.span, at: event.time)
            return false
        case .runEnd: return event.depth == 1 && becomeIdle(at: event.time)
        }
    }

    /// The loop has nothing to do.
    ///
    /// - Returns: whether the monitor's thread must check.
    mutating func becomeIdle(at time: MonotonicInstant) -> Bool {
        defer { (phase, longest) = (.idle, nil) }
        guard case .reported(let since) = phase else { return false }
        var inner = Duration.zero
        for callout in open.reversed() {
            let duration = callout.since.duration(to: time)
            consider(callout, duration - callout.inner - inner)
            inner = duration
        }
        over.append(report(since: since, at: time, isOver: true, longest))
        return true
    }

    /// What the monitor's thread must report now, and when it must check again.
    mutating func check(at now: MonotonicInstant) -> (reports: [RunLoopStall], next: MonotonicInstant) {
        var reports = over
        over = []
        var next = MonotonicInstant.distantFuture
        if case .busy(let since) = phase {
            next = since.advanced(by: threshold)
            if next <= now {
                phase = .reported(since: since)
                next = .distantFuture
                reports.append(report(since: since, at: now, isOver: false, underWay(at: now) ?? longest))
            }
        } else if wasBusy, phase == .idle {
            next = now.advanced(by: threshold)
        }
        wasBusy = false
        isArmed = next != .distantFuture
        return (reports, next)
    }

    private mutating func becomeBusy(at time: MonotonicInstant) -> Bool {
        if phase != .idle { return false }
        phase = .busy(since: time)
        wasBusy = true
        calloutCount = open.count
        for index in open.indices {
            open[index].since = max(open[index].since, time)
            open[index].inner = .zero
        }
        defer { isArmed = true }
        return !isArmed
    }

    private mutating func end(_ span: UInt64, at time: MonotonicInstant) {
        guard let index = open.lastIndex(where: { $0.span == span }) else { return }
        let callout = open[index]
        open.removeLast(open.count - index)
        let duration = callout.since.duration(to: time)
        consider(callout, duration - callout.inner)
        if !open.isEmpty { open[open.count - 1].inner += duration }
    }

    private mutating func consider(_ callout: OpenCallout, _ duration: Duration) {
        if let longest, longest.duration >= duration { return }
        longest = (callout.callout, callout.mode, duration)
    }

    private func underWay(at now: MonotonicInstant) -> CalloutDuration? {
        open.last.map { ($0.callout, $0.mode, $0.since.duration(to: now) - $0.inner) }
    }

    private func report(
        since: MonotonicInstant, at time: MonotonicInstant, isOver: Bool, _ culprit: CalloutDuration?
    ) -> RunLoopStall {
        RunLoopStall(
            threadID: threadID, since: since, duration: since.duration(to: time), isOver: isOver,
            callout: culprit?.callout, calloutDuration: culprit?.duration ?? .zero, mode: culprit?.mode ?? .default,
            calloutCount: calloutCount)
    }
}

/// The state that a stall monitor's thread shares with its loop. It refers to neither monitor nor loop.
final class StallRecord: RunLoopInstrument {
    private let state: Mutex<StallState>  // taken on the loop's thread for each event
    private let wakeUp = ThreadEvent()  // guards itself
    private let hasEnded = Atomic<Bool>(false)
    /// Set when the monitor's thread accesses nothing more.
    let finished = ThreadEvent()  // guards itself
    private let checks = Atomic<Int>(0)  // written by the monitor's thread
    private let isReporting = Atomic<Bool>(false)  // written by the monitor's thread; set under the lock of `state`

    init(of loop: ThreadRunLoop, threshold: Duration) {
        state = Mutex(StallState(threadID: loop.threadID, threshold: threshold))
    }

    func note(_ event: RunLoopTraceEvent) {
        if state.withLock({ $0.note(event) }) { wakeUp.set() }
    }

    func loopFallsIdle(at time: MonotonicInstant) {
        if state.withLock({ $0.becomeIdle(at: time) }) { wakeUp.set() }
    }

    func loopDidEnd() {
        loopFallsIdle(at: .now)
    }

    /// Makes `monitor` return.
    func end() {
        hasEnded.store(true, ordering: .releasing)
        wakeUp.set()
    }

    /// Whether `end` was called.
    var isOver: Bool { hasEnded.load(ordering: .acquiring) }

    /// How often the monitor's thread has woken.
    var checkCount: Int { checks.load(ordering: .acquiring) }

    /// Whether the loop is idle and the monitor's thread has nothing left to do.
    var isIdle: Bool { state.withLock { $0.isIdle } && !isReporting.load(ordering: .acquiring) }

    /// Reports stalls until the end. For the monitor's thread.
    func monitor(_ report: (RunLoopStall) -> Void) {
        defer { finished.set() }
        var next = MonotonicInstant.distantFuture
        while !isOver {
            wakeUp.wait(until: next)
            // Clear first, then check: what a later wake-up announces is checked again.
            wakeUp.clear()
            checks.store(checks.load(ordering: .relaxed) + 1, ordering: .releasing)
            let found = state.withLock { state in
                let found = state.check(at: .now)
                isReporting.store(!found.reports.isEmpty, ordering: .relaxed)
                return found
            }
            next = found.next
            for stall in found.reports where !isOver { report(stall) }
            isReporting.store(false, ordering: .releasing)
        }
    }
}
