// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The scenarios that show the rows of "Differences from CFRunLoop, on purpose" in Docs/RunLoopOrder.md.

/// A difference that is a row of the table, and a scenario that shows it.
struct KnownDifference: Sendable {
    enum Proof: Sendable {
        /// A scenario with the trace of each loop.
        case traces(Scenario, coreFoundation: Trace, package: Trace)
        /// The difference is no matter of traces: a test whose name contains the id asks both loops itself.
        case test
    }

    let id: String
    let proof: Proof

    /// The scenarios of all rows; a row may have several.
    static let all: [KnownDifference] =
        wakingDifferences + stoppingDifferences + orderDifferences + itemDifferences + eventDifferences
        + ["D5", "D10", "D11", "D12", "D13", "D14", "D16", "D17", "D19", "D25", "D28", "D29", "D30", "D32"].map {
            KnownDifference(id: $0, proof: .test)
        }

    private static func traces(
        _ id: String, _ items: [Item], _ steps: [Action], coreFoundation: Trace, package: Trace,
        traced: [Mode] = [.default]
    ) -> KnownDifference {
        KnownDifference(
            id: id,
            proof: .traces(
                Scenario(items, steps, traced: traced), coreFoundation: coreFoundation, package: package))
    }
}

extension KnownDifference {
    private static let wakingDifferences = [
        traces(
            "D1", [.source("s", [.stop]), .observer("o", [.wait], [.signal("s")])],
            [.add("s", .default), .add("o", .default), .run(.default, .stuck(milliseconds: 20))],
            coreFoundation: "entry timers sources wait o woke exit =timedOut",
            package: "entry timers sources wait o woke timers sources s exit =stopped"),
        traces(
            "D2", [.source("idle"), .block("b", [.stop]), .observer("o", [.wait], [.post("b")])],
            [.add("idle", .default), .add("o", .default), .run(.default, .stuck(milliseconds: 20))],
            coreFoundation: "entry timers sources wait o woke b exit =timedOut",
            package: "entry timers sources wait o woke b exit =stopped"),
        traces(
            "D3", [.source("idle"), .block("b1", [.post("b2")]), .block("b2", [.stop])],
            [.add("idle", .default), .post("b1"), .run(.default, .stuck(milliseconds: 20))],
            coreFoundation: "entry timers sources b1 wait woke b2 exit =timedOut",
            package: "entry timers sources b1 wait woke b2 exit =stopped"),
        traces(
            "D4", [.block("b")], [.post("b"), .run(.default, .stuck(milliseconds: 20))],
            coreFoundation: "entry timers sources b wait woke exit =timedOut",
            package: "entry timers sources b wait woke exit =finished"),
    ]

    private static let stoppingDifferences = [
        traces(
            "D6", [.source("idle")], [.add("idle", .default), .stop, .run(.default, .zero), .run(.default, .zero)],
            coreFoundation: "entry timers sources exit =timedOut entry timers sources exit =timedOut",
            package: "entry exit =stopped entry timers sources exit =timedOut"),
        traces(
            "D6", [.source("s", [.stop])],
            [.add("s", .default), .signal("s"), .run(.default, .long, returns: true), .run(.default, .zero)],
            coreFoundation: "entry timers sources s exit =handledSource entry timers sources exit =timedOut",
            package: "entry timers sources s exit =stopped entry timers sources exit =timedOut"),
        traces(
            "D7", [.source("idle"), .timer("t", .due, [.stop])],
            [.add("idle", .default), .add("t", .default), .run(.default, .zero)],
            coreFoundation: "entry timers sources t exit =timedOut",
            package: "entry timers sources t exit =stopped"),
    ]

    private static let orderDifferences = [
        traces(
            "D8", [.port("p1", order: 100), .port("p2", order: -100)],
            [
                .add("p1", .default), .add("p2", .default), .write("p1"), .write("p2"), .run(.default, .zero),
                .run(.default, .zero),
            ],
            coreFoundation: "entry timers sources p1 exit =timedOut entry timers sources p2 exit =timedOut",
            package: "entry timers sources p2 exit =timedOut entry timers sources p1 exit =timedOut"),
        traces(
            "D8", [.timer("t1", .past(hours: 1), order: 5), .timer("t2", .past(hours: 1), order: -5)],
            [.add("t1", .default), .add("t2", .default), .run(.default, .zero)],
            coreFoundation: "entry timers sources t1 t2 exit =timedOut",
            package: "entry timers sources t2 t1 exit =timedOut"),
        traces(
            "D9", [.timer("t1", .past(hours: 1)), .timer("t2", .past(hours: 3)), .timer("t3", .past(hours: 2))],
            [.add("t3", .default), .add("t2", .default), .add("t1", .default), .run(.default, .zero)],
            coreFoundation: "entry timers sources t1 t2 t3 exit =timedOut",
            package: "entry timers sources t2 t3 t1 exit =timedOut"),
        traces(
            "D24", [.port("p1"), .port("p2", [.write("p3"), .write("p1")]), .port("p3")],
            ["p1", "p2", "p3"].map { .add($0, .default) } + [.write("p1"), .write("p2")]
                + (0..<4).map { _ in .run(.default, .zero, returns: true) },
            coreFoundation: "p1 =handledSource p2 =handledSource p3 =handledSource p1 =handledSource",
            package: "p1 =handledSource p2 =handledSource p1 =handledSource p3 =handledSource", traced: []),
    ]

    private static let itemDifferences = [
        traces(
            "D18", [.source("s")],
            [.add("s", .default), .add("s", .common), .remove("s", .common), .askContains("s", .default)],
            coreFoundation: "s?default:no", package: "s?default:yes"),
        traces(
            "D21", [.source("s1", [.remove("s2", .default)]), .source("s2")],
            [.add("s1", .default), .add("s2", .default), .signal("s1"), .signal("s2"), .run(.default, .zero)],
            coreFoundation: "entry timers sources s1 s2 exit =timedOut",
            package: "entry timers sources s1 exit =timedOut"),
        traces(
            "D21", [.source("idle"), .observer("o1", [.exit], [.remove("o2", .default)]), .observer("o2", [.exit])],
            [.add("idle", .default), .add("o1", .default), .add("o2", .default), .run(.default, .zero)],
            coreFoundation: "entry timers sources exit o1 o2 =timedOut",
            package: "entry timers sources exit o1 =timedOut"),
        traces(
            "D27", [.source("s")],
            [.add("s", .common), .remove("s", .default), .invalidate("s"), .askContains("s", .common)],
            coreFoundation: "s?common:yes", package: "s?common:no"),
        traces(
            "D27", [.timer("t", .far)],
            [.add("t", .common), .remove("t", .default), .askContains("t", .common)],
            coreFoundation: "t?common:no", package: "t?common:yes"),
    ]

    private static let eventDifferences = [
        traces(
            "D15", [.timer("t", .due), .port("p")],
            [.add("t", .default), .remove("t", .default), .add("p", .default), .write("p")]
                + [.run(.default, .zero), .run(.default, .zero)],
            coreFoundation: "entry timers sources exit =timedOut entry timers sources p exit =timedOut",
            package: "entry timers sources p exit =timedOut entry timers sources exit =timedOut"),
        traces(
            "D31", [.timer("t", .due, repeats: true, [.add("t", .alpha), .setDate("t", .due)])],
            [.add("t", .default), .run(.default, .zero), .run(.alpha, .zero)],
            coreFoundation: "entry timers sources t exit =timedOut =timedOut@alpha",
            package: "entry timers sources t exit =timedOut t =timedOut@alpha"),
        traces(
            "D20", [.port("p"), .observer("o", [.timers], repeats: false, [.wakeUp, .write("p")])],
            [.add("p", .default), .add("o", .default), .run(.default, .zero), .run(.default, .zero)],
            coreFoundation: "entry timers o sources exit =timedOut entry timers sources p exit =timedOut",
            package: "entry timers o sources p exit =timedOut entry timers sources exit =timedOut"),
        traces(
            "D20", [.port("p"), .timer("t", .due)],
            [.add("p", .default), .write("p"), .add("t", .default), .run(.default, .zero), .run(.default, .zero)],
            coreFoundation: "entry timers sources p exit =timedOut entry timers sources t exit =timedOut",
            package: "entry timers sources t exit =timedOut entry timers sources p exit =timedOut"),
        traces(
            "D22", [.timer("idle", .far), .block("b1", [.run(.alpha, .zero)]), .block("b2", in: [.alpha])],
            [.add("idle", .alpha), .post("b1"), .post("b2"), .run(.default, .zero)],
            coreFoundation: "entry timers sources b1 =timedOut@alpha exit =timedOut",
            package: "entry timers sources b1 b2 =timedOut@alpha exit =timedOut"),
        traces(
            "D22",
            [.timer("idle", .far), .block("b1", [.post("b3"), .run(.default, .zero)]), .block("b2"), .block("b3")],
            [.add("idle", .default), .post("b1"), .post("b2"), .run(.default, .zero)],
            coreFoundation:
                "entry timers sources b1 entry timers sources b3 exit =timedOut b2 exit =timedOut",
            package: "entry timers sources b1 entry timers sources b2 b3 exit =timedOut exit =timedOut"),
        traces(
            "D22",
            [
                .timer("idle", .far), .block("b1", in: [.common]), .block("b2", in: [.alpha], [.addCommonMode(.alpha)]),
                .block("b3", in: [.alpha]),
            ],
            [.add("idle", .alpha), .post("b1"), .post("b2"), .post("b3"), .run(.alpha, .zero)],
            coreFoundation: "b2 b3 b1 =timedOut@alpha", package: "b2 b1 b3 =timedOut@alpha"),
        traces(
            "D23", [.source("s1", [.invalidate("s2")]), .source("s2"), .observer("o", [.wait], [.stop])],
            [.add("s1", .default), .add("s2", .default), .add("o", .default), .signal("s1"), .signal("s2")]
                + [.run(.default, .long)],
            coreFoundation: "entry timers sources s1 wait o woke exit =stopped",
            package: "entry timers sources s1 timers sources wait o woke exit =stopped"),
        traces(
            "D26",
            [.port("p"), .observer("o", [.woke], [.run(.default, .zero)]), .observer("w", [.wait], [], [.stop])],
            [.add("p", .default), .add("o", .default), .add("w", .default), .write("p")]
                + [.run(.default, .long, returns: true)],
            coreFoundation:
                "entry timers sources wait w woke o entry timers sources exit =timedOut p exit =handledSource",
            package: """
                entry timers sources wait w woke o entry timers sources p exit =timedOut
                timers sources wait w woke o exit =stopped
                """),
    ]
}
