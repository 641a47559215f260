// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct SourceBehaviourTests {
    private static let sources = (0..<6).map { Item.source("s\($0)") }

    private static func adding(_ items: [Item]) -> [Action] {
        items.map { .add($0.name, .default) }
    }

    @Test("CF 9: signalled sources are performed by order, then by the time of their first signal")
    func signalOrder() async throws {
        let signals = [4, 1, 5, 4, 0, 3, 2, 1].map { Action.signal("s\($0)") }
        try await showEqual(
            Scenario(Self.sources, Self.adding(Self.sources) + signals + [.run(.default, .zero)]),
            "entry timers sources s4 s1 s5 s0 s3 s2 exit =timedOut")
        let items: [Item] = [.source("a", order: 1), .source("b", order: -1), .source("c")]
        try await showEqual(
            Scenario(items, Self.adding(items) + [.signal("a"), .signal("c"), .signal("b"), .run(.default, .zero)]),
            "entry timers sources b c a exit =timedOut")
    }

    @Test("CF 10: a run that returns after a source performs only the first that is signalled")
    func onlyFirst() async throws {
        let items = Array(Self.sources.prefix(2))
        try await showEqual(
            Scenario(
                items,
                Self.adding(items) + [.signal("s1"), .signal("s0")]
                    + (0..<3).map { _ in .run(.default, .zero, returns: true) }),
            """
            entry timers sources s1 exit =handledSource entry timers sources s0 exit =handledSource
            entry timers sources exit =timedOut
            """)
    }

    @Test("CF 11, D23: the last signalled source decides whether the pass waits")
    func lastSourceDecides() async throws { try await showDifference("D23") }

    @Test("CF 12: a source that signals itself is performed in the next pass, after one ready port")
    func signalsItself() async throws {
        let items: [Item] = [.source("s", [.signal("s")], [.signal("s")], [.stop]), .port("p")]
        try await showEqual(
            Scenario(items, Self.adding(items) + [.signal("s"), .write("p"), .run(.default, .long)]),
            "entry timers sources s p timers sources s timers sources s exit =stopped")
    }

    @Test("CF 13, D1: a signal without a wake-up is not noticed by a loop that sleeps")
    func signalDoesNotWake() async throws { try await showDifference("D1") }

    @Test("CF 14: a signal stays pending while the loop does not run, and several are one")
    func pendingSignal() async throws {
        let scenario = Scenario(
            [.source("s")],
            [
                .signal("s"), .signal("s"), .add("s", .default), .signal("s"), .run(.default, .zero),
                .run(.default, .zero),
            ])
        try await showEqual(
            scenario, "entry timers sources s exit =timedOut entry timers sources exit =timedOut")
    }

    @Test("CF 15: fifty writes to an eventfd are one perform")
    func coalescedRings() async throws {
        try await showEqual(
            Scenario(
                [.port("p")],
                [.add("p", .default)] + (0..<50).map { _ in .write("p") }
                    + [.run(.default, .zero, returns: true), .run(.default, .zero, returns: true)]),
            "entry timers sources p exit =handledSource entry timers sources exit =timedOut")
    }

    @Test(
        "CF 17: ports are served in the order of becoming ready; ports that were ready when they were added, in that order"
    )
    func readyOrder() async throws {
        let ports = (0..<4).map { Item.port("p\($0)") }
        let writes = [2, 0, 3, 2, 1, 0].map { Action.write("p\($0)") }
        let runs = (0..<4).map { _ in Action.run(.default, .long, returns: true) }
        let after = Scenario(ports, Self.adding(ports) + writes + runs, traced: [])
        try await showEqual(after, "p2 =handledSource p0 =handledSource p3 =handledSource p1 =handledSource")
        let before = Scenario(ports, writes + Self.adding(ports) + runs, traced: [])
        try await showEqual(before, "p0 =handledSource p1 =handledSource p2 =handledSource p3 =handledSource")
    }

    @Test("CF 17, D8: the order of a port-based source has no effect")
    func portOrder() async throws { try await showDifference("D8") }

    @Test("CF 18: a run with a limit of zero serves one port")
    func oneEvent() async throws {
        let ports: [Item] = [.port("p1"), .port("p2")]
        try await showEqual(
            Scenario(
                ports,
                Self.adding(ports) + [.write("p1"), .write("p2"), .run(.default, .zero), .run(.default, .zero)]),
            "entry timers sources p1 exit =timedOut entry timers sources p2 exit =timedOut")
    }

    @Test("CF 20: the mode that reads an eventfd first consumes it for the other")
    func twoModes() async throws {
        try await showEqual(
            Scenario(
                [.port("p")],
                [.add("p", .alpha), .add("p", .beta), .write("p"), .run(.alpha, .zero), .run(.beta, .zero)]),
            "p =timedOut@alpha =timedOut@beta")
    }
}
