// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// Compares what messages of other processes occupy on the heap with what their accounts say.
@Suite("accounts and memory", .contract) struct MemoryAccountTests {
    enum Kind: String, CaseIterable, Codable, Sendable {
        case empty, plain, request, large, manyParts, rights

        var count: Int {
            switch self {
            case .empty, .plain, .request: rounds(2_000)
            case .large: 40
            case .manyParts: 40
            case .rights: 40
            }
        }

        func message(_ number: Int) -> MachMessage {
            switch self {
            case .empty, .request: MachMessage()
            case .plain: MachMessage(bytes: pattern(64))
            case .large: MachMessage(bytes: pattern(60_000))
            case .manyParts: MachMessage(components: Array(repeating: .bytes([1]), count: 7_000))
            case .rights:
                MachMessage(
                    components: (0..<200).map { index in
                        let address = PortAddress(
                            path: "/nowhere/\(number)-\(index)/\(String(repeating: "x", count: 40))")
                        return .right(SendRight(DeadPort(address)))
                    })
            }
        }
    }

    @Test(
        "F-A8: a peer's account has what its messages occupy on the heap, within a factor of two",
        arguments: Kind.allCases)
    func heap(_ kind: Kind) async {
        await #expect(processExitsWith: .success) { [kind = kind as Kind] in
            await Pools.start()
            try await onBench(over: .socket) { bench in
                let port = try bench.port(queueLimit: 10_000)
                var limits = PeerLimits()
                limits.queuedBytes = 1 << 40
                limits.queuedMessages = 10_000
                port.setPeerLimits(limits)
                let peer = try RawPeer(to: port, on: bench)
                try peer.send(kind.message(0))
                _ = try port.next()
                let before = heapBytes()
                for number in 1...kind.count {
                    try peer.send(kind.message(number), asks: kind == .request ? UInt64(number) : 0)
                    port.localPort.receiveFromSockets()
                }
                #expect(port.queueCount == kind.count)
                let sockets = try #require(port.localPort.sockets)
                let owner = PeerID.process(PeerIdentity.current.processID)
                let account = limits.queuedBytes - sockets.quotas.withLock { $0.allowance(of: owner).bytes }
                let heap = heapBytes() - before
                print("\(kind): heap \(heap / kind.count), account \(account / kind.count)")
                // A sanitizer's heap says nothing about this one.
                if before > 0, dlsym(nil, "__tsan_init") ?? dlsym(nil, "__asan_init") == nil {
                    #expect(heap <= 2 * account)
                    #expect(account <= 2 * heap)
                }
            }
        }
    }
}
