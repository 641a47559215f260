// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

extension Case {
    /// Many ports on one loop, and many connections of one process.
    static var scale: [Case] {
        [Case("ports.scale", measure: ports), Case("connections.scale", measure: connections), timers]
    }

    private static func ports(_ settings: Settings) throws -> [CaseResult] {
        func contest(
            _ variant: String, of active: Int, beside few: Int, goal: Double?, ours: @escaping () throws -> Contestant
        ) throws -> CaseResult {
            try Contest(
                id: "ports.scale", variant: variant, unit: .nanoseconds, goal: Goal(ratio: goal), ours: ours,
                baseline: { try .portField(few) }, others: [{ try .queueField(active) }]
            ).measure(settings)
        }
        // The many ports are made once: that takes longer than a slice.
        let most = 100_000
        let (alone, aloneDescriptors) = try fieldAndDescriptors(1)
        alone.end()
        let (field, descriptors) = try fieldAndDescriptors(most)
        defer { field.end() }
        return [
            try contest("10 ports", of: 10, beside: 1, goal: nil) { try .portField(10) },
            try contest("1000 ports", of: 1_000, beside: 10, goal: 1.5) { try .portField(1_000) },
            try contest("\(most) ports", of: most, beside: 10, goal: 1.5) { .portField(field, active: most) },
            try contest("\(most) ports, 10 in use", of: 10, beside: 10, goal: 1.5) { .portField(field, active: 10) },
            CaseResult(
                "ports.scale", "descriptors of \(most) ports", .descriptors,
                ours: Score(Double(descriptors - aloneDescriptors)),
                baseline: ("an eventfd a port", Score(Double(most))), goal: Goal(value: 0)),
        ]
    }

    /// Ports on a loop, and how many descriptors this process has opened for them once the loop has slept. Descriptors
    /// that an earlier case has left, and that are closed meanwhile, do not count.
    private static func fieldAndDescriptors(_ number: Int) throws -> (PortField, Int) {
        let before = try PortField.descriptors()
        let field = try PortField(number)
        _ = try field.run(1, to: number)
        field.waitUntilAsleep()
        return (field, try PortField.descriptors().subtracting(before).count)
    }

    private static func connections(_ settings: Settings) throws -> [CaseResult] {
        func contest(
            ports: Int, children: Int, beside few: Int, goal: Double? = 1.5, rings: Bool = true
        ) throws -> CaseResult {
            try Contest(
                id: "connections.scale", variant: "\(ports * children) connections" + (rings ? "" : ", sockets alone"),
                unit: .nanoseconds, goal: Goal(ratio: goal),
                ours: { try .connections(ports: ports, children: children, rings: rings) },
                baseline: { try .connections(ports: few, children: 1, rings: rings) },
                others: [{ try .socketField(ports * children) }]
            ).measure(settings)
        }
        return [
            try contest(ports: 10, children: 1, beside: 1, goal: nil),
            try contest(ports: 100, children: 10, beside: 10),
            try contest(ports: 100, children: 100, beside: 10),
            try contest(ports: 100, children: 10, beside: 10, rings: false),
            try contest(ports: 100, children: 100, beside: 10, rings: false),
        ]
    }
}
