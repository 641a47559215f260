// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct RunBehaviourTests {
    @Test("CF 34, D6: a stop of a loop that does not run is lost")
    func earlyStop() async throws { try await showDifference("D6") }

    @Test("CF 35, D6: a stop is lost when its run returns for another reason")
    func lostStop() async throws { try await showDifference("D6") }

    @Test("CF 35: a stop is for the innermost run, and two stop one run")
    func innermost() async throws {
        let scenario = Scenario(
            [
                .source("outer", [.run(.alpha, .long)]), .source("inner", [.stop, .stop]), .block("end", [.stop]),
                .observer("o", [.wait], [.post("end"), .wakeUp]),
            ],
            [
                .add("outer", .default), .add("inner", .alpha), .add("o", .default), .signal("outer"), .signal("inner"),
                .run(.default, .long),
            ], traced: [.default, .alpha])
        try await showEqual(
            scenario,
            """
            entry timers sources outer entry@alpha timers@alpha sources@alpha inner exit@alpha =stopped@alpha
            timers sources wait o woke end exit =stopped
            """)
    }

    @Test("CF 36: a wake-up does not count while the loop does not run or handles an event, and ends no run")
    func ignoredWakeUps() async throws {
        let idle = Scenario(
            [.source("idle")], [.add("idle", .default), .wakeUp, .run(.default, .milliseconds(5))])
        try await showEqual(idle, "entry timers sources wait woke exit =timedOut")
        let handling = Scenario(
            [.port("p", [.wakeUp])],
            [.add("p", .default), .write("p"), .run(.default, .zero), .write("p"), .run(.default, .zero)])
        try await showEqual(
            handling, "entry timers sources p exit =timedOut entry timers sources p exit =timedOut")
        let woken = Scenario(
            [.source("idle"), .observer("o", [.wait], [.wakeUp], [.stop])],
            [.add("idle", .default), .add("o", .default), .run(.default, .long)])
        try await showEqual(woken, "entry timers sources wait o woke timers sources wait o woke exit =stopped")
    }

    @Test("CF 39, D3: a block that a block posts waits for the next event")
    func blockInBlock() async throws { try await showDifference("D3") }

    @Test("CF 39, D2: a block does not wake the loop")
    func blockDoesNotWake() async throws { try await showDifference("D2") }

    @Test("CF 40: blocks are called in the order of posting, in any of their modes; they are no handled sources")
    func blocks() async throws {
        let scenario = Scenario(
            [
                .block("b1"), .block("b2", in: [.alpha]), .block("b3", in: [.alpha, .default]),
                .block("b4", in: [.beta]),
                .source("idle"),
            ],
            [.add("idle", .default), .add("idle", .alpha)] + ["b2", "b4", "b1", "b3", "b2"].map { .post($0) }
                + [.askModes, .run(.default, .zero, returns: true), .run(.alpha, .zero, returns: true)])
        try await showEqual(
            scenario,
            "modes?alpha,beta,default entry timers sources b1 b3 exit =timedOut b2 b2 =timedOut@alpha")
    }

    @Test("CF 40: a block that a source posts is called before the run returns for that source")
    func blockOfSource() async throws {
        let items: [Item] = [.source("s", [.post("b")]), .port("p", [.post("b")]), .block("b")]
        let steps: [Action] = [
            .add("s", .default), .add("p", .default), .signal("s"), .run(.default, .long, returns: true), .write("p"),
            .run(.default, .long, returns: true),
        ]
        try await showEqual(
            Scenario(items, steps),
            "entry timers sources s b exit =handledSource entry timers sources wait woke p b exit =handledSource")
    }

    @Test("CF 41: observers are called by order; one whose call is running is skipped by a nested run")
    func observers() async throws {
        let items: [Item] = [
            .observer("high", [.entry], order: 1), .observer("a", [.entry], [.run(.default, .zero)]),
            .observer("low", [.entry], order: -1), .source("idle"),
        ]
        try await showEqual(
            Scenario(items, items.map { .add($0.name, .default) } + [.run(.default, .zero)]),
            """
            entry low a entry low high timers sources exit =timedOut high timers sources exit =timedOut
            """)
    }

    @Test("CF 41: an observer that is added during a phase waits for the next; one that does not repeat is called once")
    func observerLists() async throws {
        let items: [Item] = [
            .observer("o1", [.timers], [.add("o2", .default)]), .observer("o2", [.timers], repeats: false),
            .observer("o3", [.timers]), .source("idle"),
        ]
        let steps = [Action.add("o1", .default), .add("o3", .default), .add("idle", .default)]
        try await showEqual(
            Scenario(items, steps + (0..<3).map { _ in .run(.default, .zero) } + [.askValid("o2")]),
            """
            entry timers o1 o3 sources exit =timedOut entry timers o1 o3 o2 sources exit =timedOut
            entry timers o1 o3 sources exit =timedOut o2?invalid
            """)
    }
}
