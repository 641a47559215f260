// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Case {
    /// Many ports on one loop, and many connections of one process.
    static var scale: [Case] {
        [Case("ports.scale", measure: ports), Case("connections.scale", measure: connections), timers]
    }

    private static func ports(_ settings: Settings) throws -> [CaseResult] {
        func contest(_ variant: String, _ number: Int, active: Int? = nil, beside few: Int, goal: Double?) throws
            -> CaseResult
        {
            try Contest(
                id: "ports.scale", variant: variant, unit: .nanoseconds, goal: Goal(ratio: goal),
                ours: { try .portField(number, active: active) }, baseline: { try .portField(few) }
            ).measure(settings)
        }
        let most = 100_000
        return [
            try contest("10 ports", 10, beside: 1, goal: nil),
            try contest("1000 ports", 1_000, beside: 10, goal: 1.5),
            try contest("100000 ports", most, beside: 10, goal: 1.5),
            try contest("100000 ports, 10 in use", most, active: 10, beside: 10, goal: 1.5),
            try descriptors(most),
        ]
    }

    private static func descriptors(_ number: Int) throws -> CaseResult {
        let few = try PortField(1)
        let before = try PortField.descriptorCount()
        let field = try PortField(number)
        let after = try PortField.descriptorCount()
        few.end()
        field.end()
        // The second thread's loop has descriptors of its own, as the first had.
        let loop = try loopDescriptors()
        return CaseResult(
            "ports.scale", "descriptors of 100000 ports", .descriptors, ours: Score(Double(after - before - loop)),
            baseline: ("an eventfd a port", Score(Double(number))), goal: Goal(value: 0))
    }

    /// How many descriptors a thread's loop has.
    private static func loopDescriptors() throws -> Int {
        let before = try PortField.descriptorCount()
        let field = try PortField(1)
        defer { field.end() }
        return try PortField.descriptorCount() - before
    }

    private static func connections(_ settings: Settings) throws -> [CaseResult] {
        try [10, 1_000, 10_000].map { number in
            try Contest(
                id: "connections.scale", variant: "\(number) connections", unit: .nanoseconds,
                goal: Goal(ratio: number == 10 ? nil : 1.5),
                ours: { try .connections(number) }, baseline: { try .connections(number == 10 ? 1 : 10) }
            ).measure(settings)
        }
    }
}
