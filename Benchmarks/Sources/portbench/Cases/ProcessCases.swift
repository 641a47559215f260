// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CPeers
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
            Case(
                Contest(
                    id: "ipc.request", ours: { try .namedPort() }, baseline: { try .socketPair(bare_packets) },
                    others: [{ try .socketPair(bare_stream) }])),
            payload("ipc.payload.1MiB", 1 << 20),
            payload("ipc.payload.16MiB", 16 << 20),
        ]
    }

    private static func payload(_ id: String, _ size: Int) -> Case {
        Case(on: [.anywhere, .twoProcessors]) { placement in
            let unbound = [{ .copy(size) }] + Contestant.peers(peer_ipc_roundtrip, size: size)
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
