// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

@Suite(LeakCheck.withCoreFoundation, Settling()) struct RandomScenarioTests {
    /// How many scenarios are played: 1,000, fewer under the thread sanitizer, or the number in `PORT_TEST_SCENARIOS`.
    private static let count = sysEnvironment("PORT_TEST_SCENARIOS").flatMap { Int($0) } ?? rounds(1000)

    @Test("random scenarios give the same trace on CFRunLoop and on ThreadRunLoop", .seeded)
    func random() async throws {
        let (reach, difference) = try await offThePool { try Self.compareAll() }
        if let difference { return _ = Issue.record("\(difference)") }
        // Few scenarios differ more from what a thousand do.
        let share = Self.count < 1000 ? 4 : 1
        for (feat, minimum) in Self.minimums {
            #expect(reach[feat] >= minimum * Self.count / 1000 / share, "the generator makes too little of \(feat)")
        }
        let actions: [Reach.Feat] = [
            .add, .remove, .invalidate, .signal, .write, .setDate, .post, .addCommonMode, .stop, .wakeUp, .question,
        ]
        #expect(reach[.passedOver] < actions.map { reach[$0] }.reduce(0, +), "most actions are passed over")
    }

    /// D23: s1, which the outer run has to come to, would be performed by the run inside.
    @Test("a mode does not become common inside of a run while the one outside has common sources to perform")
    func commonInside() async throws {
        var scenario = Scenario(
            [
                .source("s1"), .source("s2", [.run(.beta, .long, returns: true)]), .timer("idle", .far),
                .observer("o", [.woke], [.addCommonMode(.beta)]),
            ],
            [
                .add("s1", .common), .add("s2", .default), .add("idle", .beta), .add("o", .beta), .signal("s2"),
                .signal("s1"), .run(.default, .long),
            ], traced: [.default, .beta])
        scenario.isGuarded = true
        let comparison = try await offThePool { [scenario] in try Comparison(scenario) }
        #expect(comparison.isEqual, "\(comparison)")
        #expect(comparison.reach[.passedOver] == 1)
    }

    /// What a thousand scenarios do at least: about half of what they do.
    private static let minimums: [(Reach.Feat, Int)] = [
        (.source, 400), (.port, 250), (.timer, 250), (.observer, 4500), (.block, 400), (.routine, 700),
        (.result(.finished), 800), (.result(.stopped), 1000), (.result(.timedOut), 400), (.result(.handledSource), 250),
        (.depth(1), 2000), (.depth(2), 400), (.depth(3), 60), (.sleep, 60), (.add, 400), (.remove, 200),
        (.invalidate, 90), (.signal, 400), (.write, 300), (.setDate, 200), (.post, 250), (.addCommonMode, 25),
        (.stop, 70), (.wakeUp, 120), (.question, 500),
    ]

    /// Plays scenarios until all are played, or one differs.
    private static func compareAll() throws -> (Reach, difference: String?) {
        var reach = Reach()
        for number in 0..<count {
            let comparison = try Comparison(ScenarioGenerator.scenario(number))
            reach.add(comparison.reach)
            if comparison.isEqual { continue }
            let smallest = try comparison.shrunk()
            return (reach, "Scenario \(number) differs. Without what does not matter it is:\n\(smallest)")
        }
        return (reach, nil)
    }
}
