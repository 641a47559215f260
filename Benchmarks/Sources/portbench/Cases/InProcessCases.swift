// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPeers
import NamedPortServer

extension Case {
    /// Threads of one process.
    static var inProcess: [Case] {
        [
            Case(
                Contest(
                    id: "inproc.roundtrip.busy", goal: Goal(value: 1, ratio: 1.0 / 30),
                    ours: { try .portPair(.adaptive) }, baseline: { .coreFoundationPair() },
                    others: [Contestant.eventfdPair, { .dispatchPair() }, { .streamPair() }]
                        + Contestant.peers(peer_roundtrip))),
            Case(
                Contest(
                    id: "inproc.roundtrip.sleeping", goal: Goal(ratio: 1.15),
                    ours: { try .portPair(.blocking) }, baseline: { try .eventfdPair() },
                    others: [{ .coreFoundationPair() }])),
            Case(
                Contest(
                    id: "inproc.oneway.64", unit: .nanoseconds, goal: Goal(value: 100),
                    ours: { try .portSink() }, baseline: { .dispatchOneWay() },
                    others: [{ .streamOneWay() }] + Contestant.peers(peer_oneway))),
            Case(
                Contest(
                    id: "inproc.request", ours: { try .portServer() }, baseline: { try .eventfdPair() },
                    others: [{ .dispatchPair() }])),
        ]
    }
}
