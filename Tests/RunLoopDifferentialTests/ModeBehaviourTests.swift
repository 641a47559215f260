// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct ModeBehaviourTests {
    @Test("CF 1: sources, timers and blocks keep a mode alive, observers do not")
    func alive() async throws {
        let scenario = Scenario(
            [.observer("o", [.entry]), .source("s"), .timer("t", .far), .block("b")],
            [
                .add("o", .default), .run(.default, .long), .add("s", .default), .run(.default, .zero),
                .remove("s", .default), .run(.default, .long), .add("t", .default), .run(.default, .zero),
                .invalidate("t"), .run(.default, .long), .post("b"), .run(.default, .zero), .run(.default, .long),
                .run(.common, .long), .run(.ghost, .long),
            ])
        try await showEqual(
            scenario,
            """
            =finished entry o timers sources exit =timedOut =finished entry o timers sources exit =timedOut =finished
            entry o timers sources b exit =timedOut =finished =finished@common =finished@ghost
            """)
    }

    @Test("CF 2, D4: a mode that held one block is found empty only after the wait")
    func lateEmptiness() async throws { try await showDifference("D4") }

    @Test("CF 3: a source that removes the last item ends the run at the end of its pass")
    func lastItem() async throws {
        let invalidating = Scenario(
            [.source("s", [.invalidate("s")])], [.add("s", .default), .signal("s"), .run(.default, .long)])
        try await showEqual(invalidating, "entry timers sources s exit =finished")
        let removing = Scenario(
            [.port("p", [.remove("p", .default)])], [.add("p", .default), .write("p"), .run(.default, .long)])
        try await showEqual(removing, "entry timers sources wait woke p exit =finished")
    }

    @Test(
        "CF 5: a mode that becomes common comes into being with the first common item, and gets the common blocks that wait"
    )
    func commonModes() async throws {
        let scenario = Scenario(
            [.source("s"), .block("b", in: [.common]), .timer("t", .far)],
            [
                .askModes, .addCommonMode(.beta), .askModes, .add("s", .common), .askModes, .post("b"),
                .addCommonMode(.alpha), .askModes, .askContains("s", .alpha), .run(.alpha, .zero),
            ], traced: [])
        try await showEqual(
            scenario,
            "modes?default modes?default modes?beta,default modes?alpha,beta,default s?alpha:yes b =timedOut@alpha")
    }

    @Test("CF 6, D18: removing an item from the common modes removes it from modes to which it was added by itself")
    func commonRemoval() async throws { try await showDifference("D18") }

    @Test("CF 7: schedule is called once per mode, and so is cancel")
    func routines() async throws {
        let scenario = Scenario(
            [.source("s", reportsModes: true)],
            [
                .addCommonMode(.alpha), .add("s", .common), .add("s", .default), .addCommonMode(.beta),
                .remove("s", .beta), .invalidate("s"), .invalidate("s"),
            ])
        try await showEqual(scenario, "s+alpha s+default s+beta s-beta s-alpha s-default")
    }
}
