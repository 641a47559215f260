// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("watching a port", .contract) struct WatchingTests {
    @Test("a tap shows the heads and the beginnings of the messages that are received, in order")
    func messages() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            #expect(!port.allowsWatching)
            port.setAllowsWatching(true)
            #expect(port.allowsWatching)
            let right = try bench.right(to: port)
            var copies = try tap(port, on: bench, bytes: 4)
            try right.send(MachMessage(id: 1, text: "hello"))
            try right.send(MachMessage(id: 2, components: [.bytes([7]), .bytes([8, 9])]))
            #expect(try port.next().id == 1)
            #expect(try port.next().id == 2)
            let first = try #require(try copies.next(until: .distantPast))
            let own = PeerIdentity.current.processID
            #expect(first == .message(tappedMessage(1, 1, 1, 5, own, Array("hell".utf8)), leftOut: 0))
            let second = try #require(try copies.next(until: .distantPast))
            #expect(second == .message(tappedMessage(2, 2, 2, 3, own, [7]), leftOut: 0))
            #expect(try copies.next(until: .distantPast) == nil)
            #expect(port.statistics.clientCount == 1)
            port.invalidate()
            #expect(try copies.next(until: Watchdog.deadline) == .ended)
        }
    }

    @Test("no process watches a port whose owner does not agree, or agrees no more")
    func notAllowed() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            #expect(throws: PortError.self) { _ = try tap(port, on: bench) }
            port.setAllowsWatching(true)
            var copies = try tap(port, on: bench)
            port.setAllowsWatching(false)
            // The I/O thread may still hold the send lock, for its answer: then it sends this too.
            #expect(try copies.next(until: Watchdog.deadline) == .ended)
            try port.makeSendRight().send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
        }
    }

    @Test("what finds no room is left out and counted; the service goes on")
    func slow() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            port.setAllowsWatching(true)
            var copies = try tap(port, on: bench, bytes: TappedMessage.byteLimit)
            let count: UInt64 = 1000
            let right = port.makeSendRight()
            for id in 0..<Int32(count) {
                try right.send(MachMessage(id: id, bytes: [UInt8](repeating: 1, count: TappedMessage.byteLimit)))
                #expect(try port.next().id == id)
            }
            var seen: UInt64 = 0
            while case .message(_, let leftOut)? = try copies.next(until: .distantPast) {
                #expect(leftOut == 0)
                seen += 1
            }
            #expect(seen > 0 && seen < count)
            try right.send(MachMessage(id: -1))
            _ = try port.next()
            guard case .message(let message, let leftOut)? = try copies.next(until: .distantPast) else {
                Issue.record("nothing is shown after a pause")
                return
            }
            #expect(message.id == -1 && leftOut == count - seen)
        }
    }

    @Test("the number of taps has a limit; one that has gone makes room")
    func limit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            port.setAllowsWatching(true)
            var peers: [RawPeer] = []
            for index in 0...LocalPort.tapLimit {
                let peer = try RawPeer(to: port, on: bench)
                try peer.send(PacketHeader(kind: .tap))
                port.localPort.receiveFromSockets()
                #expect(try peer.next()?.componentCount == (index < LocalPort.tapLimit ? 1 : 2))
                peers.append(peer)
            }
            peers[0].end()
            port.localPort.receiveFromSockets()
            _ = try tap(port, on: bench)
        }
    }

    private func tappedMessage(
        _ number: UInt64, _ id: Int32, _ components: Int, _ count: Int, _ sender: Int32, _ bytes: [UInt8]
    ) -> TappedMessage {
        var message = TappedMessage(MachMessage(id: id), number: number, byteLimit: 0)
        (message.componentCount, message.byteCount, message.sender) = (components, count, sender)
        message.bytes = bytes
        return message
    }

    /// A tap of a port, whose sockets are polled on another thread until it has begun.
    private func tap(_ port: MachPort, on bench: Bench, bytes: Int = 64) throws -> MessageTap {
        let worker = Worker()
        defer { try? worker.end() }
        try port.schedule(on: worker.loop)
        defer { port.unschedule(from: worker.loop) }
        return try MessageTap(port.localPort.address(in: bench.directory), byteLimit: bytes, until: Watchdog.deadline)
    }
}
