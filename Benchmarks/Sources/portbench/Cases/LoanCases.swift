// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import CPeers
import NamedPortServer

extension Case {
    /// Memory in messages that is not copied.
    static var loans: [Case] {
        [
            Case(on: [.anywhere, .twoProcessors]) { placement in
                Contest(
                    id: "inproc.loan.1MiB", goal: Goal(ratio: 1.3),
                    ours: { try .loanThreadPair(1 << 20, on: placement) },
                    baseline: { try .portPair(placement.busy, on: placement).named("ports, 64 bytes") },
                    others: placement == .anywhere
                        ? [{ .copy(1 << 20) }] + Contestant.peers(peer_body, size: 1 << 20) : [])
            },
            loan("ipc.loan.64KiB", 64 << 10),
            loan("ipc.loan.1MiB", 1 << 20),
            loan("ipc.loan.16MiB", 16 << 20),
            Case(on: [.anywhere, .twoProcessors]) { placement in
                Contest(
                    id: "ipc.loan.flat", goal: Goal(ratio: 1.1),
                    ours: { try .loanPair(16 << 20, on: placement) },
                    baseline: { try .loanPair(64 << 10, on: placement).named("ports, 64 KiB") },
                    others: [{ try .loanPair(1 << 20, on: placement).named("ports, 1 MiB") }])
            },
            filled("ipc.loan.1MiB.filled", 1 << 20),
            filled("ipc.loan.16MiB.filled", 16 << 20),
        ]
    }

    /// A body of which two bytes are read, against a message that has no more than 64.
    private static func loan(_ id: String, _ size: Int) -> Case {
        Case(on: [.anywhere, .twoProcessors]) { placement in
            Contest(
                id: id, goal: Goal(ratio: 1.3), ours: { try .loanPair(size, on: placement) },
                baseline: { try .portProcessPair(placement.busy, on: placement).named("ports, 64 bytes") },
                others: [
                    { try .loanRequest(size, on: placement) }, { try .loanPair(size, .sealed, on: placement) },
                    { try .portProcessPair(placement.busy, size: size, on: placement).named("ports, copied") },
                    { try .loanPair(size, .shared, .copies, on: placement).named("ports, copied through a loan") },
                    { try .socketPair(bare_stream, there: size, on: placement) },
                ]
                    + (placement == .anywhere
                        ? [peer_ipc_roundtrip, peer_ipc_request].flatMap { Contestant.peers($0, size: size) } : []))
        }
    }

    /// A body that is written as a whole, and read as a whole.
    private static func filled(_ id: String, _ size: Int) -> Case {
        Case(on: [.anywhere, .twoProcessors]) { placement in
            Contest(
                id: id, goal: Goal(ratio: 1.15), ours: { try .loanPair(size, .shared, .all, on: placement) },
                baseline: { try .bodyPasses(size, slots: 1, on: placement) },
                others: [{ try .bodyPasses(size, slots: 2, on: placement) }])
        }
    }
}
