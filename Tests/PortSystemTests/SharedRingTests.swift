// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import RawRing
import TestSupport
import Testing

/// Constants that Glibc's Swift module does not have.
enum Unnamed {
    static let addSeals: CInt = 1033
    static let allocate = function("fallocate", (@convention(c) (CInt, CInt, Int, Int) -> CInt).self)
    static let makeFile = function("memfd_create", (@convention(c) (UnsafePointer<CChar>, CUnsignedInt) -> CInt).self)

    private static func function<Function>(_ name: String, _ type: Function.Type) -> Function {
        unsafeBitCast(dlsym(nil, name), to: type)
    }
}

@Suite("rings of records in shared memory", .leakCheck) struct SharedRingTests {
    static let limit = 65_536

    /// Both ends of a ring, each over mappings of its own, and the memory of each as a hostile side sees it.
    struct Ends {
        var producer: RingProducer
        var consumer: RingConsumer
        /// The producer's mapping.
        let memory: RawRing
        /// The consumer's mapping.
        let back: RawRing

        init() throws {
            memory = try RawRing()
            back = try RawRing()
            producer = RingProducer(SharedRing(from: memory.memory, to: try back.mapped()))
            consumer = RingConsumer(SharedRing(from: try memory.mapped(), to: back.memory), limit: limit)
        }
    }

    static func head(_ number: UInt64) -> PacketWords { (number, ~number, number &* 3, 7, number) }

    static func isPacket(_ outcome: RingConsumer.Outcome, _ number: UInt64, _ payload: [UInt8]) -> Bool {
        guard case .packet(let words, let bytes) = outcome else { return false }
        return words == head(number) && bytes == payload
    }

    func isEmpty(_ outcome: RingConsumer.Outcome) -> Bool { if case .empty = outcome { true } else { false } }
    func isBroken(_ outcome: RingConsumer.Outcome) -> Bool { if case .broken = outcome { true } else { false } }
    struct NotAMark: Error {}

    func isMark(_ outcome: RingConsumer.Outcome) -> Bool { if case .mark = outcome { true } else { false } }

    @Test(
        "a consumer learns on which processor its producer wrote last; what a producer claims there changes no record",
        .enabled(if: sysProcessor() > 0, "needs a kernel that says where a thread runs"))
    func processor() async throws {
        for index in 0..<min(2, sysAllowedProcessorCount()) {
            try await onNewThread {
                var ends = try Ends()
                #expect(ends.consumer.ring.producerProcessor == 0)
                try useProcessor(index)
                #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
                #expect(ends.consumer.ring.producerProcessor == UInt64(sysProcessor()))
                ends.memory[1] = .max
                #expect(Self.isPacket(ends.consumer.read(), 1, [1]))
            }
        }
    }

    @Test("records of every length come out as they went in, around the end many times")
    func lengths() throws {
        var ends = try Ends()
        for number in 0..<rounds(3000) {
            let count = number % 7 == 0 ? number * 131 % (Self.limit - 40 + 1) : number % 200
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ number) }
            guard case .written = ends.producer.write(Self.head(UInt64(number)), payload[...]) else {
                Issue.record("no room for \(number)")
                return
            }
            #expect(Self.isPacket(ends.consumer.read(), UInt64(number), payload))
            #expect(isEmpty(ends.consumer.read()))
        }
    }

    @Test(
        "a payload is written where there is room for all of it, otherwise to an array of its own", arguments: [2, 3])
    func landing(room: Int) throws {
        var ends = try Ends()
        _ = ends.producer.write(Self.head(1), [7, 8, 9])
        var target: [UInt8] = [1]
        var outcome = RingConsumer.Outcome.empty
        target.append(addingCapacity: room) { outcome = ends.consumer.read(into: &$0) }
        #expect(Self.isPacket(outcome, 1, room == 2 ? [7, 8, 9] : []))
        #expect(target == (room == 2 ? [1] : [1, 7, 8, 9]))
        #expect(isEmpty(ends.consumer.read()))
    }

    @Test("a packet whose prefix was read is consumed by it or like any other, around the end many times")
    func prefixes() throws {
        var ends = try Ends()
        for number in 0..<3000 {
            let count = number % 7 == 0 ? number * 131 % (Self.limit - 40 + 1) : number % 200
            let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0 &+ number) }
            _ = ends.producer.write(Self.head(UInt64(number)), payload[...])
            let prefix = ends.consumer.peek()
            #expect((prefix != nil) == (count >= 8))
            #expect(ends.consumer.peekHead() == UInt64(littleEndian: Self.head(UInt64(number)).0))
            if let prefix, number % 3 > 0 {
                let firstWord = withUnsafeBytes(of: prefix.firstWord) { Array($0) }
                #expect(prefix.head == Self.head(UInt64(number)) && prefix.payloadSize == count)
                #expect(firstWord + ends.consumer.consumeBody(after: prefix) == payload)
            } else {
                #expect(Self.isPacket(ends.consumer.read(), UInt64(number), payload))
            }
            #expect(ends.consumer.peek() == nil && ends.consumer.peekHead() == nil)
            #expect(isEmpty(ends.consumer.read()))
        }
    }

    @Test("the prefixes of all packets in the ring are read one after the other, and the packets then consumed")
    func severalPrefixes() throws {
        var ends = try Ends()
        for round in 0..<2_000 {
            let payloads = (0..<round % 7).map { index in
                [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 8 + (round * 37 + index * 11) % 90)
            }
            for (index, payload) in payloads.enumerated() {
                _ = ends.producer.write(Self.head(UInt64(index)), payload[...])
            }
            var prefixes: [PacketPrefix] = []
            ends.consumer.peekPrefixes(&prefixes, atMost: 100, size: 100_000) { _ in true }
            var limited: [PacketPrefix] = []
            ends.consumer.peekPrefixes(&limited, atMost: 2, size: 100_000) { _ in true }
            #expect(limited.map(\.head.0) == prefixes.prefix(2).map(\.head.0))
            ends.consumer.peekPrefixes(&limited, atMost: 100, size: 100_000) { $0.head.0 < 2 }
            #expect(limited.map(\.head.0) == prefixes.prefix(2).map(\.head.0))
            ends.consumer.peekPrefixes(&limited, atMost: 100, size: 1) { _ in true }
            #expect(limited.map(\.head.0) == prefixes.prefix(1).map(\.head.0))
            #expect(prefixes.map(\.payloadSize) == payloads.map(\.count))
            for (index, prefix) in prefixes.enumerated() {
                #expect(prefix.head == Self.head(UInt64(index)))
                #expect(ends.consumer.consumeBody(after: prefix) == Array(payloads[index][8...]))
            }
            #expect(isEmpty(ends.consumer.read()))
        }
    }

    @Test("a tail that goes back behind prefixes that were read is detected when the packets are consumed")
    func tailGoesBackBehindPrefixes() throws {
        var ends = try Ends()
        _ = ends.producer.write(Self.head(1), [UInt8](repeating: 7, count: 16)[...])
        let seen = ends.consumer.peek()
        let prefix = try #require(seen)
        ends.memory.tail = 16
        #expect(ends.consumer.peek(at: prefix.recordSize) == nil)
        #expect(ends.consumer.consumeBody(after: prefix) == [UInt8](repeating: 7, count: 8))
        #expect(isBroken(ends.consumer.read()))
    }

    @Test("a change of the memory after a prefix was read changes bytes at most, never a length")
    func prefixIsACopy() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [UInt8](repeating: 7, count: 24)[...]) == .written(.asleep))
        let seen = ends.consumer.peek()
        let prefix = try #require(seen)
        ends.memory[RawRing.records] = 60_000 | 1 << 32
        ends.memory[RawRing.records + 1] = 0
        #expect(prefix.head == Self.head(1) && prefix.payloadSize == 24)
        #expect(ends.consumer.consumeBody(after: prefix) == [UInt8](repeating: 7, count: 16))
        #expect(isEmpty(ends.consumer.read()))
    }

    @Test("there is no prefix of a mark, nor of an impossible record: reading reports which it is")
    func noPrefix() throws {
        var ends = try Ends()
        #expect(ends.producer.writeMark(before: 3) == .written(.awake))
        #expect(ends.producer.write(Self.head(1), [UInt8](repeating: 7, count: 64)[...]) == .written(.asleep))
        #expect(ends.consumer.peek() == nil)
        #expect(isMark(ends.consumer.read()))
        #expect(ends.consumer.peek() != nil)
        for word in [47 | 1 << 32, 65_537 | 1 << 32, 105 | 1 << 32, 104 | 3 << 32, 104] as [UInt64] {
            ends.memory[RawRing.records + 1] = word
            #expect(ends.consumer.peek() == nil)
        }
        #expect(isBroken(ends.consumer.read()))
    }

    @Test("a full ring accepts nothing more but a mark, and each record comes out once it is read")
    func full() throws {
        var ends = try Ends()
        for round in 0..<5 {
            var count: UInt64 = 0
            while case .written = ends.producer.write(Self.head(count), [1, 2, 3]) { count += 1 }
            #expect(ends.producer.write(Self.head(0), [UInt8]()[...]) == .full)
            #expect(Int(count) == (SharedRing.capacity - 8) / 56, "round \(round)")
            #expect(ends.producer.writeMark(before: UInt32(round)) == .written(.awake))
            #expect(ends.producer.isEmpty() == false)
            for number in 0..<count { #expect(Self.isPacket(ends.consumer.read(), number, [1, 2, 3])) }
            #expect(isMark(ends.consumer.read()))
            #expect(isEmpty(ends.consumer.read()))
            #expect(ends.producer.isEmpty() == true)
        }
    }

    @Test("a sleeping consumer is signalled once, and one that is awake, or has woken, never")
    func event() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(0), []) == .written(.asleep))
        #expect(ends.producer.write(Self.head(0), []) == .written(.asleep))
        #expect(ends.producer.beginWakeUp() == .asleep)
        #expect(ends.producer.beginWakeUp() == .awake)
        #expect(ends.producer.write(Self.head(0), []) == .written(.awake))
        ends.consumer.sleep()
        #expect(ends.consumer.hasMore)
        #expect(ends.producer.write(Self.head(0), []) == .written(.asleep))
        ends.consumer.wake()
        #expect(ends.producer.beginWakeUp() == .awake)
        ends.consumer.sleep()
        ends.consumer.wake()
        #expect(ends.producer.write(Self.head(0), []) == .written(.awake))
    }

    @Test("records written before a ring was closed are read, and nothing is written after")
    func closed() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        #expect(!ends.producer.ring.isClosed)
        ends.consumer.ring.close()
        #expect(ends.producer.ring.isClosed)
        #expect(ends.producer.write(Self.head(2), [2]) == .closed)
        #expect(ends.producer.writeMark() == .closed)
        #expect(Self.isPacket(ends.consumer.read(), 1, [1]))
        #expect(isEmpty(ends.consumer.read()))
    }

    @Test("a producer that goes on after the end is not read any more")
    func closedForGood() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), []) == .written(.asleep))
        ends.consumer.ring.close()
        ends.memory.tail = 96
        ends.memory[RawRing.records + 6] = 40 | 1 << 32
        #expect(Self.isPacket(ends.consumer.read(), 1, []))
        #expect(isEmpty(ends.consumer.read()))
        #expect(!ends.consumer.hasMore)
    }

    @Test("each record that is written while a ring is closed is either refused or read", arguments: 0..<20)
    func closedMeanwhile(round: Int) throws {
        let ends = try Ends()
        var consumer = ends.consumer
        let thread = runOnThread { [producer = ends.producer] in
            var (producer, count) = (producer, 0)
            while true {
                switch producer.write(Self.head(UInt64(count)), []) {
                case .written: count += 1
                case .closing:
                    while producer.isLastRead == nil { sysYield() }
                    return producer.isLastRead == true ? count + 1 : count
                default: return count
                }
            }
        }
        var count: UInt64 = 0
        while count < UInt64(round) { if Self.isPacket(consumer.read(), count, []) { count += 1 } }
        consumer.ring.close()
        while Self.isPacket(consumer.read(), count, []) { count += 1 }
        let written = try thread.join()
        while Self.isPacket(consumer.read(), count, []) { count += 1 }
        #expect(count == UInt64(written))
    }

    @Test("two threads, each with its own mapping: every record once, in order, none changed")
    func threads() throws {
        let ends = try Ends()
        let total: UInt64 = 100_000
        let thread = runOnThread { [producer = ends.producer] in
            var producer = producer
            for number in 0..<total {
                let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: Int(number % 97))
                while !producer.ring.isClosed, producer.write(Self.head(number), payload[...]) == .full {}
            }
        }
        var (consumer, next) = (ends.consumer, UInt64(0))
        while next < total {
            let outcome = consumer.read()
            if isEmpty(outcome) { continue }
            let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: next), count: Int(next % 97))
            guard Self.isPacket(outcome, next, payload) else {
                Issue.record("record \(next) is another")
                consumer.ring.close()
                break
            }
            next += 1
        }
        try thread.join()
    }
}
