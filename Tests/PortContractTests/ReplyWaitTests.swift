// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RawRing
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// How the port's end of a connection waits for room in the ring. The requester of these tests only reports how much it
/// has read.
@Suite("a reply that finds no room in the ring", .rings, .contract) struct ReplyWaitTests {
    /// The size of a piece of a large message in a ring.
    private static let piece = UInt64(SharedRing.capacity / 8)
    /// How many pieces the large reply has, after a packet without any of its bytes.
    private static let pieceCount = 19
    /// How many pieces there is room for.
    private static let roomCount = 7

    /// What the requester sees and reports of the ring that leads back to it.
    private final class Consumer: Sendable {
        private let words: RawRing  // this side's
        private let there: SharedMemory  // the port's
        private let isOver = Atomic<Bool>(false)
        private let polls = Atomic<Int>(0)
        /// How much was written when there was room for no other piece.
        let full: UInt64

        init(_ words: RawRing, _ there: SharedMemory) {
            (self.words, self.there) = (words, there)
            let first = UInt64(8 + PacketHeader.size + ComponentKind.headSize)
            full = Self.tail(there) + first + UInt64(roomCount) * piece
        }

        var written: UInt64 { Self.tail(there) }

        private static func tail(_ memory: SharedMemory) -> UInt64 {
            memory.base.assumingMemoryBound(to: UInt64.self).pointee
        }

        /// Waits until `count` bytes are in the ring.
        ///
        /// - Returns: false when the whole reply has been sent otherwise.
        func wait(until count: UInt64) -> Bool {
            while written < count {
                if isOver.load(ordering: .acquiring) { return false }
                polls.wrappingAdd(1, ordering: .relaxed)
                sysPause()
            }
            return true
        }

        /// Blocks until the consumer's thread, which waits, has a processor beside the calling thread's.
        func awaitCompany() {
            let deadline = Watchdog.deadline
            while .now < deadline {
                let seen = polls.load(ordering: .relaxed)
                for _ in 0..<16 { sysPause() }
                if polls.load(ordering: .relaxed) != seen { return }
                yieldThread()
            }
        }

        func hasRead(_ count: UInt64) { words.head = count }

        func end() { isOver.store(true, ordering: .releasing) }
    }

    /// A request whose reply is longer than the ring, in which some bytes are unread.
    private struct Exchange {
        let port: MachPort
        let ring: RingPeer
        private let request: MachMessage

        init(on bench: Bench) throws {
            let port = try bench.port()
            ring = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
            for token in UInt64(1)...2 { try ring.peer.send(MachMessage(), asks: token) }
            try ring.peer.send(PacketHeader(kind: .pathChange))
            try port.next().reply(MachMessage(bytes: pattern(32_000)))
            request = try port.next()
            self.port = port
        }

        /// Replies while a thread acts for the consumer.
        ///
        /// - Returns: whether the whole reply went through the ring, and what the thread returned.
        func reply<Answer: Sendable>(
            beside body: @escaping @Sendable (Consumer) -> Answer
        ) throws -> (usesRing: Bool, answer: Answer) {
            let consumer = Consumer(ring.words, try #require(ring.portsMemory))
            let thread = runOnThread { body(consumer) }
            if ReplyWaitTests.maySpin { consumer.awaitCompany() }
            let payload = pieceCount * (Int(piece) - PacketHeader.size - 8)
            let sent = Result { try request.reply(MachMessage(bytes: pattern(payload))) }
            consumer.end()
            let answer = try thread.join()
            try sent.get()
            let member = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            return (member.sender.channel.path.withLock { $0.usesRing }, answer)
        }
    }

    @Test("goes over the socket when the consumer does not read")
    func nobodyReads() async throws {
        try await onBench(over: .socket) { bench in
            let exchange = try Exchange(on: bench)
            let (usesRing, _) = try exchange.reply { consumer in consumer.wait(until: .max) }
            #expect(!usesRing)
            var (count, consumer) = (0, exchange.ring.consumer)
            while case .packet = consumer.read() { count += 1 }
            #expect(count == 2 + Self.roomCount, "the mark comes next")
            var kind: PacketKind?
            repeat { kind = try exchange.ring.peer.next()?.kind } while kind == .pathChange || kind == .wakeUp
            #expect(kind == .continuation)
            exchange.port.invalidate()
        }
    }

    @Test(
        "waits a moment: where the consumer reads, all of it goes through the ring",
        .enabled(if: Self.maySpin, "needs two processors, and loops that may spin"))
    func consumerReads() async throws {
        try await onBench(over: .socket) { bench in
            // A consumer that does not get a processor is too late.
            let deadline = Watchdog.deadline
            var usesRing = false
            while !usesRing, .now < deadline {
                let exchange = try Exchange(on: bench)
                usesRing = try exchange.reply { consumer in
                    for number in 0..<UInt64(Self.pieceCount - Self.roomCount) {
                        guard consumer.wait(until: consumer.full + number * Self.piece) else { return }
                        // The producer goes on meanwhile, and finds no room. It would wait for twice as long.
                        let time = MonotonicInstant.after(.microseconds(10))
                        while .now < time { sysPause() }
                        consumer.hasRead((number + 1) * Self.piece)
                    }
                }.usesRing
                exchange.port.invalidate()
            }
            #expect(usesRing)
        }
    }

    @Test(
        "stops waiting for a consumer that reads a little all the time",
        .enabled(if: Self.maySpin, "needs two processors, and loops that may spin"))
    func consumerPlays() async throws {
        try await onBench(over: .socket) { bench in
            let attempts = 7
            // A producer that loses its processor at the wrong moment needs that long.
            let held = try (0..<attempts).filter { _ in
                let exchange = try Exchange(on: bench)
                let (usesRing, isHeld) = try exchange.reply { consumer in
                    guard consumer.wait(until: consumer.full) else { return false }
                    // All of them together make no room for a piece. They last a thousand times as long as the moment,
                    // and end when the producer has left the ring.
                    for number in UInt64(1)...3_000 {
                        consumer.hasRead(8 * number)
                        for _ in 0..<256 { sysPause() }
                        if consumer.written > consumer.full { return false }
                    }
                    return true
                }
                #expect(!usesRing)
                exchange.port.invalidate()
                return isHeld
            }
            #expect(held.count <= attempts / 2)
        }
    }

    private static let maySpin = ProcessorAllowance().allowsSpinning(at: .now)
}
