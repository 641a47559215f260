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

    /// What many ports add to the descriptors of one port and its loop.
    private static func descriptors(_ number: Int) throws -> CaseResult {
        func count(_ number: Int) throws -> Int {
            let before = try PortField.descriptorCount()
            let field = try PortField(number)
            defer { field.end() }
            _ = try field.run(1, to: number)
            field.waitUntilAsleep()
            return try PortField.descriptorCount() - before
        }
        let alone = try count(1)
        return CaseResult(
            "ports.scale", "descriptors of \(number) ports", .descriptors,
            ours: Score(Double(try count(number) - alone)), baseline: ("an eventfd a port", Score(Double(number))),
            goal: Goal(value: 0))
    }

    private static func connections(_ settings: Settings) throws -> [CaseResult] {
        func contest(ports: Int, children: Int, beside few: Int, goal: Double? = 1.5) throws -> CaseResult {
            try Contest(
                id: "connections.scale", variant: "\(ports * children) connections", unit: .nanoseconds,
                goal: Goal(ratio: goal), ours: { try .connections(ports: ports, children: children) },
                baseline: { try .connections(ports: few, children: 1) }
            ).measure(settings)
        }
        return [
            try contest(ports: 10, children: 1, beside: 1, goal: nil),
            try contest(ports: 100, children: 10, beside: 10),
            try contest(ports: 100, children: 100, beside: 10),
        ]
    }
}
