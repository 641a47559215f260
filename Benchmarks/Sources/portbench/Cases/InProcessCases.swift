// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPeers
import NamedPortServer

extension Case {
    /// Threads of one process.
    static var inProcess: [Case] {
        [
            Case(on: [.anywhere, .twoProcessors]) { placement in
                // The threads of these cannot be bound.
                let unbound = [{ .dispatchPair() }, { .streamPair() }] + Contestant.peers(peer_roundtrip)
                // A side that spins needs a processor of its own.
                let bound = [{ try Contestant.memoryPair(on: placement) }]
                return Contest(
                    id: "inproc.roundtrip.busy", goal: Goal(value: 1, ratio: 1.0 / 30),
                    ours: { try .portPair(placement.busy, on: placement) },
                    baseline: { try .coreFoundationPair(on: placement) },
                    others: [{ try .eventfdPair(on: placement) }] + (placement == .anywhere ? unbound : bound))
            },
            Case(on: [.anywhere, .oneProcessor, .twoProcessors]) { placement in
                Contest(
                    id: "inproc.roundtrip.sleeping", goal: Goal(ratio: 1.15),
                    ours: { try .portPair(.blocking, on: placement) },
                    baseline: { try .eventfdPair(on: placement) },
                    others: [{ try .coreFoundationPair(on: placement) }])
            },
            Case(
                Contest(
                    id: "inproc.oneway.64", unit: .nanoseconds, goal: Goal(value: 100, ratio: 3.3 / 10),
                    ours: { try .portSink() }, baseline: { .dispatchOneWay() },
                    others: [{ .streamOneWay() }, { try .queueStream() }] + Contestant.peers(peer_oneway))),
            Case(on: [.anywhere, .twoProcessors]) { placement in
                Contest(
                    id: "inproc.request", ours: { try .portServer(on: placement) },
                    baseline: { try .eventfdPair(on: placement) },
                    others: placement == .anywhere ? [{ .dispatchPair() }] : [])
            },
        ]
    }
}
