// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct TimerBehaviourTests {
    @Test("CF 22, D9: timers with past dates fire in the order of their creation")
    func pastDates() async throws { try await showDifference("D9") }

    @Test("CF 22, D8: the order of a timer has no effect")
    func order() async throws { try await showDifference("D8") }

    @Test("CF 23: all due timers fire in one pass; one that an earlier one invalidates does not")
    func onePass() async throws {
        let scenario = Scenario(
            [.timer("t1", .due, [.invalidate("t2")]), .timer("t2", .due), .timer("t3", .due)],
            [.add("t1", .default), .add("t2", .default), .add("t3", .default), .run(.default, .zero)])
        try await showEqual(scenario, "entry timers sources t1 t3 exit =timedOut")
    }

    @Test("CF 25: a past date that is set inside of the call makes the timer fire again at once")
    func redated() async throws {
        let scenario = Scenario(
            [.timer("t", .due, repeats: true, [.setDate("t", .past(hours: 1))])],
            [.add("t", .default)] + (0..<3).map { _ in .run(.default, .zero) })
        try await showEqual(
            scenario,
            """
            entry timers sources t exit =timedOut entry timers sources t exit =timedOut
            entry timers sources exit =timedOut
            """)
    }

    @Test(
        "CF 26: a one-shot timer is valid in its call and not after; a nested run fires others, not the one that fires")
    func oneShot() async throws {
        let scenario = Scenario(
            [.timer("t1", .due, [.askValid("t1"), .run(.default, .zero)]), .timer("t2", .due)],
            [.add("t1", .default), .add("t2", .default), .run(.default, .zero), .askValid("t1"), .askValid("t2")])
        try await showEqual(
            scenario,
            """
            entry timers sources t1 t1?valid entry timers sources t2 exit =timedOut exit =timedOut
            t1?invalid t2?invalid
            """)
    }

    @Test("CF 27: a timer is no handled source")
    func noSource() async throws {
        let scenario = Scenario(
            [.timer("t", .due), .source("idle")],
            [.add("t", .default), .add("idle", .default), .run(.default, .zero, returns: true)])
        try await showEqual(scenario, "entry timers sources t exit =timedOut")
    }

    @Test("CF 29, D15: a timer that was removed leaves a wake-up at its date")
    func wakeUpLeft() async throws { try await showDifference("D15") }
}
