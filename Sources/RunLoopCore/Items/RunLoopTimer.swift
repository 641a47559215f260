// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

/// Fires on a loop's thread at a date, once or repeatedly.
///
/// A timer is not real-time: it fires when its loop runs in one of its modes and is free. A repeating timer that is
/// late fires once for all the firings that it missed, and keeps its phase. A one-shot timer is invalid after its call.
/// A timer that is in several modes, or loops, fires once per date, on the first loop that gets to it.
///
/// - Important: Thread safety: any thread. The handler is called on the loop's thread.
public final class RunLoopTimer: Sendable {
    /// What a timer calls when it fires.
    public typealias Handler = @Sendable (RunLoopTimer) -> Void

    enum Phase: Sendable {
        case armed, firing
        /// Firing, and the fire date was set during the handler's call.
        case rescheduled
    }

    struct State: Sendable {
        var membership = LoopMembership()
        var schedule: TimerSchedule
        var phase = Phase.armed
    }

    let id = ItemID()
    let handler: Handler
    let state: Mutex<State>  // comes before the loop's lock

    /// What it is called in traces, reports and descriptions; nil when it was given no name.
    public let name: String?
    /// The time between two firings; nil for a timer that fires once.
    public let interval: Duration?
    /// Timers that are due together fire lowest first, then by date, then in the order of creation.
    public let order: Int

    /// Makes a timer, to be added to a loop.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - fireDate: when it fires first; a past date means at once, ``MonotonicInstant/distantFuture`` never.
    ///   - interval: the time between two firings, greater than zero, or the call traps; nil to fire once.
    ///   - tolerance: how late it may fire so that it can share a wake-up with others; at most half the interval
    ///     counts, a negative one counts as zero.
    ///   - order: of timers that are due together, lower ones fire first.
    ///   - handler: what to call, with the timer.
    public init(
        name: String? = nil, fireDate: MonotonicInstant, interval: Duration? = nil, tolerance: Duration = .zero,
        order: Int = 0, _ handler: @escaping Handler
    ) {
        if let interval, interval <= .zero {
            fatalError("A repeating timer needs an interval greater than zero. Pass nil for a timer that fires once.")
        }
        self.name = name
        self.interval = interval
        self.order = order
        self.handler = handler
        state = Mutex(
            State(schedule: TimerSchedule(fireDate: fireDate, interval: interval, tolerance: tolerance)))
    }

    /// Makes a timer that fires first after some time from now.
    ///
    /// - Parameters:
    ///   - name: what it is called in traces, reports and descriptions.
    ///   - delay: from now to the first firing.
    ///   - interval: the time between two firings, greater than zero, or the call traps; nil to fire once.
    ///   - tolerance: how late it may fire so that it can share a wake-up with others.
    ///   - order: of timers that are due together, lower ones fire first.
    ///   - handler: what to call, with the timer.
    public convenience init(
        name: String? = nil, after delay: Duration, interval: Duration? = nil, tolerance: Duration = .zero,
        order: Int = 0, _ handler: @escaping Handler
    ) {
        self.init(
            name: name, fireDate: .after(delay), interval: interval, tolerance: tolerance, order: order, handler)
    }

    /// When it fires next. During its call, the date at which it fired.
    public var fireDate: MonotonicInstant { state.withLock { $0.schedule.fireDate } }

    /// How late it may fire so that it can share a wake-up with others; at most half the interval.
    public var tolerance: Duration {
        get { state.withLock { $0.schedule.tolerance } }
        set { change { $0.schedule.tolerance = newValue } }
    }

    /// Whether it may still fire. A one-shot timer is valid until its call has returned.
    public var isValid: Bool { state.withLock { $0.membership.isValid } }

    /// Changes the date of the next firing; a repeating timer continues from it.
    ///
    /// Inside the timer's own call it sets the date of the firing after this one; a one-shot timer ends nevertheless.
    ///
    /// - Parameter date: the date; a past one means at once.
    public func setNextFireDate(_ date: MonotonicInstant) {
        change {
            $0.schedule.fireDate = date
            if $0.phase == .firing { $0.phase = .rescheduled }
        }
    }

    /// Removes the timer from everything, permanently. A call that is in progress continues.
    public func invalidate() {
        for loop in state.withLock({ $0.membership.invalidate() }) ?? [] {
            _ = loop.removeItem(id, from: nil)
        }
    }
}

extension RunLoopTimer: Hashable {
    /// Whether both are the same timer.
    public static func == (left: RunLoopTimer, right: RunLoopTimer) -> Bool { left === right }

    /// Hashes the timer's identity.
    ///
    /// - Parameter hasher: takes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension RunLoopTimer: CustomStringConvertible {
    /// What it is, its name when it has one, and its number.
    public var description: String { id.description(of: "timer", named: name) }
}

// MARK: - Firing

extension RunLoopTimer {
    func add(to loop: ThreadRunLoop, _ mode: RunLoopMode) {
        state.withLock {
            if !$0.membership.add(.timer(self), to: loop, mode).isEmpty { arm($0) }
        }
    }

    func remove(from loop: ThreadRunLoop, _ mode: RunLoopMode) {
        state.withLock { _ = $0.membership.remove(id, from: loop, mode) }
    }

    /// Arms the timer in modes that it has entered.
    func armAgain() {
        state.withLock { arm($0) }
    }

    /// Begins a firing: no other loop and no nested run fires the timer until it ends.
    ///
    /// - Returns: false when it must not fire: it is invalid, firing, or not due any more.
    func beginFiring(at now: MonotonicInstant) -> Bool {
        state.withLock { state in
            guard state.membership.isValid, state.phase == .armed, state.schedule.fireDate <= now else { return false }
            state.phase = .firing
            for loop in state.membership.loops { loop.disarm(id) }
            return true
        }
    }

    /// Ends a firing: a one-shot timer becomes invalid, a repeating one gets its next date.
    func endFiring() {
        if interval == nil { invalidate() }
        state.withLock { state in
            if state.phase == .firing { state.schedule.advance(past: .now) }
            state.phase = .armed
            arm(state)
        }
    }

    func change(_ change: (inout State) -> Void) {
        state.withLock { state in
            change(&state)
            arm(state)
        }
    }

    /// Passes the timer's dates to its loops. The caller holds the timer's lock.
    private func arm(_ state: State) {
        if state.phase != .armed { return }
        for loop in state.membership.loops { loop.arm(id, state.schedule) }
    }
}

extension ThreadRunLoop {
    /// Arms a timer in every mode that it is in, and wakes the loop when it must be awake earlier than planned.
    func arm(_ id: ItemID, _ schedule: TimerSchedule) {
        let mustWake = state.withLock { state in
            var mustWake = false
            for index in state.memberModes(of: id) {
                let wakeDate = state.modes[index].timers.wakeDate ?? .distantFuture
                state.modes[index].timers.arm(id, schedule)
                if state.isRunning(in: index), schedule.latestDate < wakeDate { mustWake = true }
            }
            return mustWake
        }
        if mustWake { parker.endWait() }
    }

    /// Removes a firing timer from the queues; it stays a member of its modes.
    func disarm(_ id: ItemID) {
        state.withLock { state in
            for index in state.memberModes(of: id) { state.modes[index].timers.disarm(id) }
        }
    }
}
