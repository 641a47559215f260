// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Peers that use up descriptors, and what still works without any.
@Suite("peers use no descriptor that the process needs", .contract) struct ScarceDescriptorTests {
    @Test("F-A2: a thread that has waited for a message waits for others without a descriptor left, and receives them")
    func receiveAtLimit() async {
        await #expect(processExitsWith: .success) {
            await Pools.start()
            try await onBench(over: .socket) { bench in
                let port = try bench.port()
                let right = try bench.right(to: port)
                try right.send(MachMessage(id: 1))
                #expect(try port.next().id == 1)
                #expect(try port.receive(within: .milliseconds(1))?.id == nil)
                try withDescriptorLimit(0) {
                    #expect(try port.receive(within: .milliseconds(1))?.id == nil)
                    try right.send(MachMessage(id: 2))
                    #expect(try port.next().id == 2)
                }
            }
        }
    }

    #if PORT_FAULTS
    @Test("a listener that cannot accept is left alone for a moment, and then serves", arguments: [ENOMEM, EPERM])
    func refusedAccept(code: CInt) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false) { _, _ in ThreadRunLoop.current.stop() }
            try port.schedule(on: .current)
            let right = try bench.right(to: port)
            let sender = runOnThread { try right.send(MachMessage(id: 1), within: longTimeout) }
            let calls = SystemCallFaults.counting(with: [.init(.accept, .fail(code), times: 3)]) {
                _ = ThreadRunLoop.current.run(until: Watchdog.deadline)
            }.calls
            // Each time once, then the one that yields the connection, and one that finds no more.
            #expect(calls[.accept] ?? 0 <= 6, "\(calls)")
            try sender.join()
            port.invalidate()
        }
    }
    #endif

    @Test(
        "F-A2: connections that reach for the last eighth of the descriptors are refused, whatever the port's limits are"
    )
    func lastConnections() async {
        await #expect(processExitsWith: .success) {
            await Pools.start()
            try await onBench(over: .socket) { bench in
                let port = try bench.limitedPort { $0.connections = 10_000 }
                let connected = try RawPeer(to: port, on: bench)
                try withDescriptorLimit(128) {
                    var peers: [RawPeer] = []
                    var refusal: PacketHeader?
                    while refusal == nil, peers.count < 128 {
                        let peer = try RawPeer(to: port, on: bench)
                        #expect(try port.tryReceive()?.id == nil)
                        let isRefused = try !sysPoll(peer.socket.rawValue, .readable, until: .distantPast).isEmpty
                        if isRefused { refusal = try peer.next() }
                        peers.append(peer)
                    }
                    #expect(refusal?.messageID == Int32(PortError.Code.descriptorLimit.rawValue))
                    // What the process opens itself is not refused.
                    var own: [FileHandle] = []
                    while own.count < 128, let file = FileHandle(forReadingAtPath: "/dev/null") { own.append(file) }
                    #expect(own.count >= 128 / 8 - 2)
                    for file in own { try file.close() }
                    try connected.send(MachMessage(id: 3))
                    #expect(try port.next().id == 3)
                }
            }
        }
    }

    @Test("F-A2: a message with more descriptors than a peer may bring at once loses them: the requester learns it")
    func largeMessage() async {
        await #expect(processExitsWith: .success) {
            await Pools.start()
            try await onBench(over: .socket) { bench in
                let port = try bench.port()
                let pipe = try TestPipe()
                let peer = try RawPeer(to: port, on: bench)
                func message(_ count: Int) -> MachMessage {
                    MachMessage(id: 1, components: Array(repeating: .descriptor(pipe.reading), count: count))
                }
                try peer.send(message(201), asks: 1)
                let received = try withDescriptorLimit(800) { () throws(PortError) in try port.tryReceive() }
                #expect(received?.id == nil)
                let answer = try peer.next()
                #expect(answer?.kind == .replyDropped)
                #expect(answer?.messageID == Int32(PortError.Code.descriptorsLost.rawValue))
                try peer.send(message(201))
                #expect(try port.next().descriptors.count == 201)
            }
        }
    }

    @Test("F-A2: connections of a peer that reads nothing wait for room without a descriptor, however many there are")
    func unreadConnections() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peers = try (0..<20).map { _ in try RawPeer(to: port, on: bench) }
            let large = pattern(1 << 20)
            let messages = try peers.map { peer in
                try peer.send(MachMessage(id: 1), asks: 1)
                return try port.next()
            }
            let before = openDescriptors()
            for message in messages { try message.reply(MachMessage(bytes: large)) }
            #expect(openDescriptors() == before)
            for peer in peers { #expect(try peer.readMessage() == large.count + 8) }
        }
    }
}
