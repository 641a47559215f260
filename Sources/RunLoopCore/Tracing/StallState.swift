// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A stall monitor's state of its loop: plain values, which change under the lock of `StallWatch`.
//
//   idle      the loop sleeps, or does not run: `busySince` is nil
//   busy      it runs: `busySince` says since when; a wait that found something to do at once does not change that
//   reported  it has been busy for too long, and that was reported (`isTold`); the end will be reported too
//
// The monitor's thread is `armed` when it has a date for its next check. The loop wakes it when the loop becomes busy
// and the thread is not armed, and when a stall that was reported is over. A check that finds that the loop was not
// busy since the last one disarms the thread, so an idle loop causes no wake-ups; one that works all the time causes
// about one per threshold.

import PortSystem

/// How long a loop has been busy, and with what.
struct StallState: Sendable {
    private struct OpenCallout: Sendable {
        var span: InstrumentSpan
        var callout: RunLoopCallout
        var mode: RunLoopMode
        /// When it began, or when the loop became busy after that.
        var since: MonotonicInstant
        /// How long callouts inside it have taken since then.
        var inner: Duration = .zero
    }

    private struct Longest: Sendable {
        var callout: RunLoopCallout
        var mode: RunLoopMode
        var duration: Duration
    }

    let threadID: Int32
    let threshold: Duration
    private var busySince: MonotonicInstant?
    private var open: [OpenCallout] = []
    private var longest: Longest?
    private var calloutCount = 0
    private var isTold = false
    private var isArmed = false
    private var wasBusy = false
    /// The stalls that are over and whose end was not yet reported.
    private var over: [RunLoopStall] = []

    /// Whether nothing is in progress and nothing is left to report.
    var isIdle: Bool { busySince == nil && over.isEmpty && !isArmed }

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
            let mustLook = becomeBusy(at: event.time)
            calloutCount += 1
            open.append(OpenCallout(span: event.span, callout: callout, mode: event.mode, since: event.time))
            return mustLook
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
        guard let since = busySince else { return false }
        defer {
            busySince = nil
            longest = nil
            isTold = false
        }
        guard isTold else { return false }
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
    mutating func look(at now: MonotonicInstant) -> (reports: [RunLoopStall], next: MonotonicInstant) {
        var reports = over
        over = []
        var next = MonotonicInstant.distantFuture
        if let since = busySince, !isTold {
            next = since.advanced(by: threshold)
            if next <= now {
                isTold = true
                next = .distantFuture
                reports.append(report(since: since, at: now, isOver: false, underWay(at: now) ?? longest))
            }
        } else if wasBusy, busySince == nil {
            next = now.advanced(by: threshold)
        }
        wasBusy = false
        isArmed = next != .distantFuture
        return (reports, next)
    }

    private mutating func becomeBusy(at time: MonotonicInstant) -> Bool {
        if busySince != nil { return false }
        busySince = time
        wasBusy = true
        calloutCount = open.count
        for index in open.indices {
            open[index].since = max(open[index].since, time)
            open[index].inner = .zero
        }
        defer { isArmed = true }
        return !isArmed
    }

    private mutating func end(_ span: InstrumentSpan, at time: MonotonicInstant) {
        guard let index = open.lastIndex(where: { $0.span == span }) else { return }
        let callout = open[index]
        open.removeLast(open.count - index)
        let duration = callout.since.duration(to: time)
        consider(callout, duration - callout.inner)
        if !open.isEmpty { open[open.count - 1].inner += duration }
    }

    private mutating func consider(_ callout: OpenCallout, _ duration: Duration) {
        if let longest, longest.duration >= duration { return }
        longest = Longest(callout: callout.callout, mode: callout.mode, duration: duration)
    }

    private func underWay(at now: MonotonicInstant) -> Longest? {
        open.last.map { Longest(callout: $0.callout, mode: $0.mode, duration: $0.since.duration(to: now) - $0.inner) }
    }

    private func report(
        since: MonotonicInstant, at time: MonotonicInstant, isOver: Bool, _ culprit: Longest?
    ) -> RunLoopStall {
        RunLoopStall(
            threadID: threadID, since: since, duration: since.duration(to: time), isOver: isOver,
            callout: culprit?.callout, calloutDuration: culprit?.duration ?? .zero, mode: culprit?.mode ?? .default,
            calloutCount: calloutCount)
    }
}
