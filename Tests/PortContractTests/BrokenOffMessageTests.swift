// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("what an unfinished message costs its process", .contract) struct BrokenOffMessageTests {
    /// What ends a message that was begun, and was charged for.
    enum Ending: CaseIterable {
        case completion, abort, tooMuch, anotherMessage, otherKind, records, peersEnd
    }

    @Test(
        "a message that was begun is in its process's account until it is received, or broken off",
        arguments: Ending.allCases)
    func begun(ending: Ending) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 1 << 20 }
            let process = PeerID.process(PeerIdentity.current.processID)
            var peer: RawPeer? = try RawPeer(to: port, on: bench)
            // A head of a record that says ten bytes, and two of them.
            let head = [ending == .records ? 99 : 1, 0, 0, 0, 10, 0, 0, 0] as [UInt8]
            let begin = PacketHeader(kind: .message, messageID: 1, componentCount: 1, totalLength: 18)
            try peer?.send(begin, head + [1, 2])
            #expect(try port.tryReceive() == nil)
            let sockets = try #require(port.localPort.sockets)
            let limits = sockets.quotas.withLock { $0.limits }
            sockets.quotas.withLock { $0.limits.queuedBytes = 18 }
            #expect(sockets.quotas.withLock { $0.isOver(process) })
            sockets.quotas.withLock { $0.limits = limits }
            let rest = PacketHeader(kind: .continuation)
            switch ending {
            case .completion, .records: try peer?.send(rest, Array(repeating: 3, count: 8))
            case .abort: try peer?.send(PacketHeader(kind: .abort))
            case .tooMuch: try peer?.send(rest, Array(repeating: 3, count: 9))
            case .anotherMessage: try peer?.send(begin, head + [1, 2])
            case .otherKind: try peer?.send(PacketHeader(kind: .portEnded))
            case .peersEnd: peer = nil
            }
            let received = try port.tryReceive()
            #expect((received != nil) == (ending == .completion))
            try expectNoCharge(at: port)
            withExtendedLifetime(peer) {}
        }
    }
}
