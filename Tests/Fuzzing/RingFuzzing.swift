// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RawRing

/// What must hold whatever the other side of a ring does to the memory.
///
/// An input represents what both sides do alternately, one step after the other. A step begins with a byte that says
/// what it is, modulo eight; numbers that follow are in little-endian order, and zeros where the input ends.
public enum RingFuzzing {
    /// Traps when an end of a ring does not do what Docs/WireFormat.md says.
    public static func check(_ input: [UInt8]) {
        guard let memory = try? RawRing(), let back = try? RawRing() else { return }
        var run = Run(memory, back, input)
        for _ in 0..<stepLimit where !run.step() { break }
    }

    /// More steps show nothing new, and cost time.
    private static let stepLimit = 200

    /// The most bytes of a packet.
    fileprivate static let limit = 65_536
    fileprivate static let payload = (0..<limit).map { UInt8(truncatingIfNeeded: $0) }
}

/// Both ends of a ring, the memory as the other side has it, and a consumer that does what the page says, in the
/// simplest way.
private struct Run {
    var producer: RingProducer
    var consumer: RingConsumer
    /// The producer's memory.
    let words: RawRing
    /// The consumer's memory.
    let back: RawRing
    /// How many bytes were written, and so where the tail is when a record was.
    var written: UInt64 = 0
    var rest: ArraySlice<UInt8>

    /// How many bytes the plain consumer has read, and how many are there to be read as it knows.
    var position: UInt64 = 0
    var known: UInt64 = 0
    /// How many were there when the ring was closed.
    var last: UInt64?

    init(_ words: RawRing, _ back: RawRing, _ input: [UInt8]) {
        let ring = SharedRing(from: words.memory, to: back.memory)
        producer = RingProducer(ring)
        consumer = RingConsumer(ring, limit: RingFuzzing.limit)
        (self.words, self.back) = (words, back)
        rest = input[...]
    }

    mutating func number(_ size: Int) -> UInt64 {
        var number: UInt64 = 0
        for index in 0..<size { number |= UInt64(rest.popFirst() ?? 0) << UInt64(8 * index) }
        return number
    }

    /// - Returns: whether the run goes on.
    mutating func step() -> Bool {
        guard let kind = rest.popFirst() else { return false }
        switch kind & 7 {
        case 0: return read()
        case 1: words.tail = number(8)
        case 2: words.tail &+= number(1) * 8
        case 3: words[RawRing.records + Int(number(2)) & 32_767] = number(8)
        case 4: words[Int(number(2)) % RawRing.wordCount] ^= 1 << (number(1) & 63)
        case 5: return write(Int(number(2)))
        case 6: return learn(number(8))
        default: return change(Int(number(1)))
        }
        return true
    }

    /// Reads a record: the consumer and the plain one find the same.
    mutating func read() -> Bool {
        var prefixes: [PacketPrefix] = []
        consumer.peekPrefixes(&prefixes, atMost: 3, size: 1 << 20) { _ in true }
        let (prefix, length) = (prefixes.first, expectedLength())
        precondition((prefix == nil) == (length == nil), "the prefix of what is no packet, or none of one")
        if let prefix, let length, position / 8 % 2 == 0 {
            let bytes = words.recordBytes(from: position + 8, count: length)
            advance(by: UInt64(8 + (length + 7) / 8 * 8))
            let start = withUnsafeBytes(of: (prefix.head, prefix.firstWord)) { Array($0) }
            let read = start + consumer.consumeBody(after: prefix)
            precondition(read == bytes, "other bytes than those that were written")
            return true
        }
        let expected = plainRead()
        switch (consumer.read(), expected) {
        case (.empty, .empty): break
        case (.mark(let count), .mark(let other)): precondition(count == other, "another number of packets")
        case (.packet(let words, let payload), .packet(let bytes)):
            precondition((prefix != nil) == (payload.count >= 8), "a prefix without a packet, or none with one")
            let read = withUnsafeBytes(of: words) { Array($0) } + payload
            precondition(read == bytes, "other bytes than those that were written")
        case (.broken, .broken): return false
        default: preconditionFailure("found what is not there, instead of \(expected)")
        }
        precondition(consumer.ring.isFilled == (published != position), "a quick check finds something else")
        return true
    }

    enum Expected {
        case empty, broken
        case mark(Int)
        case packet([UInt8])
    }

    var published: UInt64 { last ?? words.tail }

    /// Reads as far as the consumer does: it asks for the tail after each packet that it sees.
    ///
    /// - Returns: the bytes of the first.
    mutating func expectedLength() -> Int? {
        var (offset, first) = (position, Int?.none)
        for _ in 0..<3 {
            if known == offset { known = published }
            guard known >= offset + 56, known - position <= 262_144, known % 8 == 0 else { break }
            let word = words[RawRing.records + Int(offset / 8 % 32_768)]
            let (length, kind) = (word & 0xFFFF_FFFF, word >> 32)
            let size = 8 + (length + 7) / 8 * 8
            guard kind == 1, length >= 48, length <= RingFuzzing.limit, size <= known - offset else { break }
            if first == nil { first = Int(length) }
            offset += size
        }
        return first
    }

    mutating func plainRead() -> Expected {
        if known == position { known = published }
        if known == position { return .empty }
        if known < position || known > position + 262_144 || known % 8 != 0 { return .broken }
        let word = words[RawRing.records + Int(position / 8 % 32_768)]
        let (length, kind) = (word & 0xFFFF_FFFF, word >> 32)
        if kind == 2 {
            advance(by: 8)
            return .mark(Int(length))
        }
        let size = 8 + (length + 7) / 8 * 8
        guard kind == 1, length >= 40, length <= RingFuzzing.limit, size <= known - position else { return .broken }
        let bytes = words.recordBytes(from: position + 8, count: Int(length))
        advance(by: size)
        return .packet(bytes)
    }

    mutating func advance(by size: UInt64) { position += size }

    /// Writes a packet: it is there whole, or nothing has changed.
    mutating func write(_ count: Int) -> Bool {
        let oldTail = words.tail
        let count = min(count, RingFuzzing.limit - 40)
        switch producer.write((1, 2, 3, 4, 5), RingFuzzing.payload[..<count]) {
        case .written:
            written += UInt64(8 + (40 + count + 7) / 8 * 8)
            precondition(words.tail == written, "a tail that is not the record's end")
        case .full: precondition(words.tail == oldTail, "full, and yet changed")
        case .closing: preconditionFailure("no other side closes the ring")
        case .closed: precondition(words.tail == oldTail && last != nil, "closed, but by neither side")
        case .broken: return false
        }
        return true
    }

    /// Sets the head: the producer believes it only within its bounds.
    mutating func learn(_ number: UInt64) -> Bool {
        let head = back.head
        back.head = number
        defer { back.head = head }  // the consumer's memory is its own
        return producer.isEmpty() != nil
    }

    mutating func change(_ what: Int) -> Bool {
        switch what & 3 {
        case 0:
            if last == nil { last = words.tail & (RawRing.closed / 2 - 1) }
            consumer.ring.close()
        case 1: consumer.sleep()
        case 2: consumer.wake()
        // There is room for one mark, which is written once all is read.
        default:
            guard let isEmpty = producer.isEmpty() else { return false }
            if isEmpty, case .written = producer.writeMark() { written += 8 }
        }
        return true
    }
}
