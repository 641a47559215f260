// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

@Suite(Census.withCoreFoundation) struct RandomScenarioTests {
    /// How many scenarios are played: 1,000, or the number in `PORT_TEST_SCENARIOS`.
    static let count = sysEnvironment("PORT_TEST_SCENARIOS").flatMap { Int($0) } ?? 1000

    @Test("random scenarios give the same trace on CFRunLoop and on ThreadRunLoop", .seeded)
    func random() async throws {
        let reach = try await offThePool {
            var reach = Reach()
            let first = sysEnvironment("PORT_TEST_FIRST").flatMap { Int($0) } ?? 0
            for number in first..<Self.count {
                if first > 0 { print(ScenarioGenerator.scenario(number)) }
                let comparison = try Comparison(ScenarioGenerator.scenario(number))
                reach.add(comparison)
                if comparison.isEqual { continue }
                Issue.record("Scenario \(number) differs, in short:\n\(try comparison.shrunk())")
                break
            }
            return reach
        }
        if let share = sysEnvironment("PORT_TEST_REACH"), share == "1" { print(reach) }
    }
}

struct Reach: CustomStringConvertible {
    var counts: [String: Int] = [:]
    mutating func add(_ c: Comparison) {
        for e in c.coreFoundation.entries {
            let e = e.split(separator: "@")[0]
            if e.hasPrefix("=") || Activity.allCases.contains(where: { "\($0)" == e }) {
                counts[String(e), default: 0] += 1
            } else if e.contains("?") {
                counts["?", default: 0] += 1
            } else {
                counts[String(e.prefix(1)), default: 0] += 1
            }
        }
    }
    var description: String {
        counts.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "\n")
    }
}
