// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import NamedPortServer

extension Case {
    /// What does not depend on how fast a machine is.
    static var counts: [Case] {
        [Case("counts.syscalls", measure: systemCalls), Case("counts.allocations", measure: allocations)]
    }

    private static func systemCalls(_ settings: Settings) throws -> [CaseResult] {
        let rows: [(String, CountedStretch, Double?, String, CountedStretch)] = [
            ("stream in process", .stream, 0.01, "bare eventfd + epoll", .bareRoundTrip),
            ("round trip, sleeping", .roundTrip, nil, "bare eventfd + epoll", .bareRoundTrip),
            ("stream, two processes", .processStream, nil, "bare SEQPACKET + epoll", .bareProcessStream),
            ("round trip, two processes", .processRoundTrip, nil, "bare SEQPACKET + epoll", .bareProcessRoundTrip),
        ]
        return try rows.map { variant, ours, goal, name, bare in
            let count = settings.isQuick ? 5_000 : 50_000
            let (value, way) = try ours.callsPerMessage(count)
            var result = CaseResult(
                "counts.syscalls", variant, .perMessage, ours: Score(value),
                baseline: (name, Score(try bare.callsPerMessage(count).value)), goal: Goal(value: goal))
            result.note = "counted by \(way)"
            return result
        }
    }

    private static func allocations(_ settings: Settings) throws -> [CaseResult] {
        let count = settings.isQuick ? 5_000 : 50_000
        func perMessage(_ contestant: Contestant, _ count: Int, messages: Int) throws -> Score {
            defer { contestant.end() }
            // Lasting memory, such as the room of a queue, is allocated before.
            _ = try contestant.run(count, nil)
            bare_allocations_begin()
            _ = try contestant.run(count, nil)
            return Score(Double(bare_allocations_end()) / Double(count * messages))
        }
        func row(
            _ variant: String, _ messages: Int, _ goal: Double?, _ ours: Contestant, _ others: [Contestant],
            rounds: Int? = nil
        ) throws -> CaseResult {
            let rounds = rounds ?? count
            let own = try perMessage(ours, rounds, messages: messages)
            let scores = try others.map { (name: $0.name, score: try perMessage($0, rounds, messages: messages)) }
            var result = CaseResult(
                "counts.allocations", variant, .perMessage, ours: own, baseline: scores[0], goal: Goal(value: goal))
            for other in scores.dropFirst() { result.peers[other.name] = other.score.value }
            return result
        }
        return [
            try row("stream in process", 1, 1, .portSink(), [.dispatchOneWay(), .streamOneWay()]),
            try row("round trip in process", 2, 1, .portPair(.adaptive), [.dispatchPair(), .streamPair()]),
            try row(
                "round trip with a loan, its sender", 2, 1.25, .loanPair(1 << 20, on: .anywhere),
                [.portProcessPair(.adaptive)]),
            try row(
                "1 MiB there and back, one side", 2, 3, .portProcessPair(.adaptive, size: 1 << 20, echoes: true),
                [.portProcessPair(.adaptive)], rounds: count / 50),
            try row("request in process", 2, 0.55, .portServer(), [.dispatchPair(), .streamPair()]),
        ]
    }
}
