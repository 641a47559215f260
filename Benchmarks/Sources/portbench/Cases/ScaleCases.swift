// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPeers
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
        func contest(ports: Int, children: Int, few: Int?, rings: Bool = true) -> Contest {
            let number = ports * children
            let fewer = few.map { few in { try Contestant.connections(ports: few, children: 1, rings: rings) } }
            return Contest(
                id: "connections.scale", variant: "\(number) connections" + (rings ? "" : ", sockets alone"),
                unit: .nanoseconds, goal: Goal(ratio: 1.5),
                ours: { try .connections(ports: ports, children: children, rings: rings) },
                baseline: { try .socketField(number) },
                others: (fewer.map { [$0] } ?? []) + (rings ? Contestant.peers(peer_connections, size: number) : []))
        }
        var (results, obstacles): ([CaseResult], [String]) = ([], [])
        for contest in [
            contest(ports: 10, children: 1, few: nil),
            contest(ports: 100, children: 10, few: 10),
            contest(ports: 100, children: 100, few: 10),
            contest(ports: 100, children: 10, few: 10, rings: false),
            contest(ports: 100, children: 100, few: 10, rings: false),
        ] {
            do {
                results.append(try contest.measure(settings))
            } catch let reason as NotAvailable {
                obstacles.append("\(contest.variant ?? ""): not available: \(reason)")
            }
        }
        do {
            results.append(try firstOfMany(settings))
        } catch let reason as NotAvailable {
            obstacles.append("10000 clients at once: not available: \(reason)")
        }
        if results.isEmpty { throw NotAvailable(obstacles.joined(separator: "; ")) }
        for obstacle in obstacles { results[0].add(note: obstacle) }
        return results
    }

    /// How long the first message takes when ten thousand connect at once. The kernel has a hundred processes to run, so
    /// this varies much, also for bare sockets.
    private static func firstOfMany(_ settings: Settings) throws -> CaseResult {
        let (ports, children) = (100, 100)
        var (own, bare): ([(first: Int64, last: Int64)], [(first: Int64, last: Int64)]) = ([], [])
        for _ in 0..<(settings.isQuick ? 3 : 11) {
            do {
                let field = try ConnectionField(ports: ports, children: children)
                defer { field.end() }
                own.append(try field.connectAll())
            }
            bare.append(try Contestant.connectingSockets(listeners: ports, clients: children))
        }
        func score(_ times: [Int64]) -> Score { Score(rounds: times.map(Double.init), laps: []) }
        var result = CaseResult(
            "connections.scale", "\(ports * children) connect at once, the first message", .microseconds,
            ours: score(own.map(\.first)), baseline: ("bare SEQPACKET + epoll", score(bare.map(\.first))),
            goal: Goal(value: 10_000))
        result.peers["the last message"] = score(own.map(\.last)).value / 1_000
        result.peers["the last of bare SEQPACKET + epoll"] = score(bare.map(\.last)).value / 1_000
        return result
    }
}
