// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

/// Watches a loop from a thread of its own, and reports what keeps it busy for too long.
///
/// A loop is busy from the moment at which it has something to do until it has nothing to do and sleeps, or its run
/// ends. A loop that has been busy for the threshold has *stalled*: because one handler is slow, or because many
/// handlers together leave it no idle time. Each stall is reported twice: while it lasts, with the handler that is
/// being called, and when it is over, with its whole duration. A nested run that sleeps does not stall. The monitor
/// does not see what a thread does outside the runs of its loop, nor a handler that was already being called when the
/// monitor was made.
///
/// The monitor's thread sleeps while the loop is idle, and wakes about once per threshold while the loop works. It uses
/// no descriptor. A loop may have several monitors. A monitor ends when it is released, in an optimized build right
/// after its last use: store it in a property. When its handler retains it, ``invalidate()`` ends it. When the loop's
/// thread ends, a stall that was reported is over; nothing follows.
///
/// - Important: Thread safety: any thread.
public final class RunLoopStallMonitor: Sendable {
    /// What a monitor calls with each report.
    public typealias Handler = @Sendable (RunLoopStall) -> Void

    /// How long a loop may be busy, unless another limit is given: about the longest time that a person perceives as
    /// "at once".
    public static let defaultThreshold = Duration.milliseconds(250)

    let watch: StallWatch
    private weak let loop: ThreadRunLoop?

    /// How long the loop may be busy.
    public let threshold: Duration

    /// Starts watching a loop.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - threshold: how long it may be busy, greater than zero, or the call traps.
    ///   - reportLoop: the loop on which to call the handler, in its common modes; nil for the monitor's own thread,
    ///     where the next report waits until the handler returns. On the watched loop itself every report arrives when
    ///     the stall is over.
    ///   - handler: what to call. It is retained until the monitor has ended.
    /// - Throws: `EAGAIN` when the system cannot make a thread.
    public init(
        of loop: ThreadRunLoop = .main, threshold: Duration = defaultThreshold,
        reportingOn reportLoop: ThreadRunLoop? = nil, _ handler: @escaping Handler
    ) throws(SystemError) {
        if threshold <= .zero {
            fatalError("A stall monitor needs a threshold greater than zero. Choose one, such as the default.")
        }
        let watch = StallWatch(of: loop, threshold: threshold)
        self.watch = watch
        self.threshold = threshold
        self.loop = loop
        // The thread is detached: it ends after `end`.
        _ = try sysStartThread(blocksSignals: true) {
            sysNameThread("stall-monitor")
            watch.watch { stall in
                guard let reportLoop else { return handler(stall) }
                reportLoop.perform(in: [.common], name: "stall report") { handler(stall) }
            }
        }
        loop.add(watch)
    }

    deinit {
        invalidate()
    }

    /// Whether it watches.
    public var isValid: Bool { !watch.isOver }

    /// Ends the watch, permanently. A report that is in progress continues, and one that was posted to a loop arrives.
    public func invalidate() {
        loop?.remove(watch)
        watch.end()
    }
}

/// A loop has been busy for longer than it should: what a ``RunLoopStallMonitor`` reports.
public struct RunLoopStall: Sendable, Hashable, CustomStringConvertible {
    /// The kernel's id of the loop's thread.
    public let threadID: Int32
    /// Since when the loop has been busy: when it last had nothing to do, or when its run began.
    public let since: MonotonicInstant
    /// How long it has been busy, or was when it is over.
    public let duration: Duration
    /// Whether the loop is free again. Each stall is reported once while it lasts, and once when it is over.
    public let isOver: Bool
    /// The handler that is being called, the innermost one when runs are nested; when the stall is over, or no handler
    /// is being called, the one that took longest. Nil when no handler was called: then a readiness check or the loop
    /// itself is slow.
    public let callout: RunLoopCallout?
    /// How long that handler has kept the loop busy, without the handlers that nested runs called inside it.
    public let calloutDuration: Duration
    /// The mode in which that handler was called.
    public let mode: RunLoopMode
    /// How many handlers were called meanwhile, or are being called. When many share the time, each of them may be
    /// fast.
    public let calloutCount: Int

    /// A sentence with all of that.
    public var description: String {
        let verb = isOver ? "was busy for" : "has been busy for"
        let time = Self.milliseconds(duration)
        guard let callout else { return "The run loop of thread \(threadID) \(verb) \(time), without a callout." }
        return "The run loop of thread \(threadID) \(verb) \(time), \(Self.milliseconds(calloutDuration)) of it in "
            + "\(callout) in mode \(mode), with \(calloutCount) callout\(calloutCount == 1 ? "" : "s") in all."
    }

    private static func milliseconds(_ duration: Duration) -> String {
        "\(duration.nanoseconds / 1_000_000) ms"
    }
}

// A stall monitor's state of its loop: plain values, which change under the lock of `StallWatch`.
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

/// The state that a stall monitor's thread shares with the loop that it watches. It refers to neither monitor nor loop.
final class StallWatch: RunLoopInstrument {
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

    /// Makes `watch` return.
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
    func watch(_ report: (RunLoopStall) -> Void) {
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
