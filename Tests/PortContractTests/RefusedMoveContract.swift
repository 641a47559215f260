// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A port that was to move stays: its clients are served as before, and notice at most that their rings end.
@Suite("receive rights that are refused", .contract) struct RefusedMoveContract {
    @Test("a port that was refused 70 times moves, also when its client has earned rings each time", .rings)
    func refusedOften() async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let connection = try #require(right.destination as? RemotePort).reached()
            for _ in 0..<70 {
                try bench.refuseMove(port)
                try connection.earnRings(at: port) { id in
                    try right.send(MachMessage(id: id))
                    #expect(try port.next().id == id)
                }
            }
            try right.send(MachMessage(id: -1))
            #expect(try bench.move(port).next().id == -1)
        }
    }

    @Test("all connections of a process that had rings get some again after a move that was refused", .rings)
    func refusedWithMany() async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let rights = try (0..<Tuning.ringLimit).map { _ in try bench.right(to: port) }
            let connections = try rights.map { try #require($0.destination as? RemotePort).reached() }
            #expect(connections.allSatisfy { $0.hasRings })
            for _ in 0..<2 {
                try bench.refuseMove(port)
                for (index, connection) in connections.enumerated() {
                    try connection.earnRings(at: port, which: index + 1) { id in
                        try rights[index].send(MachMessage(id: id))
                        #expect(try port.next().id == id)
                    }
                }
            }
        }
    }
}

extension SocketConnection {
    /// Sends until this end sends over rings again, and that many of the port's connections have some.
    fileprivate func earnRings(at port: MachPort, which count: Int = 1, _ send: (Int32) throws -> Void) throws {
        let deadline = Watchdog.deadline
        var id: Int32 = 0
        while !(port.ringCount >= count && sender.channel.path.withLock { $0.usesRing }) {
            try send(id)
            id += 1
            if .now >= deadline { return Watchdog.expired("new rings") }
        }
    }
}
