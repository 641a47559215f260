// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CPeers
import Glibc
import NamedPortServer

extension Case {
    /// Two processes.
    static var processes: [Case] {
        [
            Case(on: [.anywhere, .twoProcessors]) { placement in
                // A side that spins needs a processor of its own.
                let bound = [{ try Contestant.memoryProcessPair(on: placement) }]
                return Contest(
                    id: "ipc.roundtrip.busy", goal: Goal(value: 2, ratio: 2.0 / 50),
                    ours: { try .portProcessPair(placement.busy, on: placement) },
                    baseline: { try .socketPair(bare_packets, on: placement) },
                    others: [{ try .socketPair(bare_stream, on: placement) }]
                        + (placement == .anywhere ? Contestant.peers(peer_ipc_roundtrip) : bound))
            },
            Case(on: [.anywhere, .oneProcessor, .twoProcessors]) { placement in
                // In a container a round trip should take no longer than the bare calls.
                Contest(
                    id: "ipc.roundtrip.sleeping", goal: Goal(ratio: Run.isFiltered ? 1 : 1.15),
                    ours: { try .portProcessPair(.blocking, on: placement) },
                    baseline: { try .socketPair(bare_packets, on: placement) },
                    others: [
                        { try .socketPair(bare_stream, on: placement) },
                        { try .socketPair(bare_packets, nested: true, on: placement) },
                    ])
            },
            Case(
                Contest(
                    id: "ipc.oneway.64", unit: .nanoseconds, goal: Goal(value: 200, ratio: 0.9 / 5),
                    ours: { try .portProcessStream() }, baseline: { try .packetStream(batch: 1) },
                    others: [{ try .packetStream(batch: 32) }, { try .memoryStream() }]
                        + Contestant.peers(peer_ipc_oneway))),
            Case(on: [.anywhere, .twoProcessors]) { placement in
                Contest(
                    id: "ipc.request", ours: { try .namedPort(placement.busy, on: placement) },
                    baseline: { try .socketPair(bare_packets, on: placement) },
                    others: [{ try .socketPair(bare_stream, on: placement) }]
                        + (placement == .anywhere ? Contestant.peers(peer_ipc_request) : []))
            },
            Case(on: [.anywhere, .twoProcessors]) { placement in
                Contest(
                    id: "ipc.request.sleeping", ours: { try .namedPort(.blocking, on: placement) },
                    baseline: { try .socketPair(bare_packets, on: placement) },
                    others: [{ try .socketPair(bare_stream, on: placement) }])
            },
            Case(on: [.anywhere, .twoProcessors]) { placement in
                Contest(
                    id: "cf.request", goal: Goal(ratio: placement == .anywhere ? nil : 1.6),
                    ours: { try .cfMessagePort(on: placement) },
                    baseline: { try .namedPort(.blocking, on: placement) },
                    others: [{ try .socketPair(bare_packets, on: placement) }]
                        + Contestant.peers(peer_cf_request, on: placement))
            },
            deadlock,
            payload("ipc.payload.1MiB", 1 << 20),
            payload("ipc.payload.16MiB", 16 << 20),
        ]
    }

    /// From a request that closes a circle of two processes to the error of one of them.
    private static var deadlock: Case {
        Case("ipc.deadlock") { settings in
            let child = try PortProcess(.adaptive)
            defer { child.end() }
            child.worker.port.setHandler { _, message in try? message.reply(MachMessage()) }
            let (right, message) = (child.right, MachMessage(id: PortChild.Request.askBack.rawValue))
            let (rounds, thread) = (settings.rounds, child.thread)
            let times = try (0..<rounds).map { _ in
                try thread.performAndWait(within: .seconds(30)) {
                    timed(1, nil) { _ = try? right.request(message, replyLimit: .seconds(20)) }
                }
            }
            let sleeps = (0..<rounds).map { _ in timed(1, nil) { usleep(100_000) } }
            return [
                CaseResult(
                    "ipc.deadlock", nil, .microseconds, ours: Score(rounds: times.map { Double($0) }, laps: []),
                    baseline: ("a sleep of 100 ms", Score(rounds: sleeps.map { Double($0) }, laps: [])),
                    goal: Goal(ratio: 1.05))
            ]
        }
    }

    private static func payload(_ id: String, _ size: Int) -> Case {
        Case(on: [.anywhere, .twoProcessors]) { placement in
            let unbound =
                [{ .copy(size) }] + [peer_ipc_roundtrip, peer_ipc_request].flatMap { Contestant.peers($0, size: size) }
            let bound = [false, true].map { isPast in
                { try Contestant.bodyRing(size, pastCaches: isPast, on: placement) }
            }
            return Contest(
                id: id, goal: Goal(ratio: 0.5),
                ours: { try .portProcessPair(placement.busy, size: size, on: placement) },
                baseline: { try .socketPair(bare_stream, there: size, on: placement) },
                others: placement == .anywhere ? unbound : bound)
        }
    }
}
