// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The side of a ring that reads. One thread at a time uses it.
package struct RingConsumer: Sendable {
    package enum Outcome: Sendable {
        case packet(PacketWords, payload: [UInt8])
        /// At least `before` packets arrive on the socket before the next record.
        case mark(before: Int)
        case empty
        /// The other side breaks the format.
        case broken
    }

    package let ring: SharedRing
    private let limit: Int
    private var position: UInt64 = 0
    private var knownTail: UInt64 = 0

    /// The consumer of a ring from which nothing has been read yet.
    ///
    /// - Parameters:
    ///   - ring: the ring.
    ///   - limit: the most bytes of a packet, its head included.
    package init(_ ring: SharedRing, limit: Int) {
        self.ring = ring
        self.limit = limit
    }

    /// Reads the next record, and a packet's payload into an array of its own.
    package mutating func read() -> Outcome {
        var none = OutputSpan<UInt8>()
        return read(into: &none)
    }

    /// Reads the next record. A packet's payload that fits `room` is written there, and the outcome's payload is then
    /// empty.
    package mutating func read(into room: inout OutputSpan<UInt8>) -> Outcome {
        if knownTail == position {
            knownTail = ring.published
            if knownTail == position { return .empty }
        }
        guard knownTail > position, knownTail - position <= UInt64(SharedRing.capacity), knownTail & 7 == 0 else {
            return .broken
        }
        let available = Int(knownTail - position)
        let word = ring.word(at: position)
        let length = Int(word & 0xFFFF_FFFF)
        switch RecordKind(rawValue: word >> 32) {
        case .mark:
            advance(by: 8)
            return .mark(before: length)
        case .packet where length >= 40 && length <= limit && 8 + padded(length) <= available:
            var head: PacketWords = (0, 0, 0, 0, 0)
            unsafe withUnsafeMutableBytes(of: &head) { unsafe ring.get($0, at: position + 8) }
            let payload = copyPayload(length - 40, in: &room) ? [] : ring.bytes(length - 40, at: position + 48)
            advance(by: 8 + padded(length))
            return .packet(head, payload: payload)
        default: return .broken
        }
    }

    /// The beginning of a record, if that is a packet whose payload has eight bytes or more. The record stays in the
    /// ring: `consumeBody` consumes it once it is next, or `read`, which also returns the other kinds of records.
    ///
    /// - Parameter offset: the size of the packets before it whose beginnings were read.
    /// - Returns: nil when there is no such packet.
    package mutating func peek(at offset: Int = 0) -> PacketPrefix? {
        let start = position + UInt64(offset)
        if knownTail == start { knownTail = ring.published }
        guard knownTail >= start + 56, knownTail - position <= UInt64(SharedRing.capacity), knownTail & 7 == 0
        else { return nil }
        let word = ring.word(at: start)
        let length = Int(word & 0xFFFF_FFFF)
        guard word >> 32 == RecordKind.packet.rawValue, length >= 48, length <= limit,
            8 + padded(length) <= Int(knownTail - start)
        else { return nil }
        let head = (
            ring.rawWord(at: start + 8), ring.rawWord(at: start + 16), ring.rawWord(at: start + 24),
            ring.rawWord(at: start + 32), ring.rawWord(at: start + 40)
        )
        return PacketPrefix(head: head, firstWord: ring.rawWord(at: start + 48), payloadSize: length - 40)
    }

    /// The first word of the next packet, in host order; nil when the next record is none. It stays in the ring.
    package mutating func peekHead() -> UInt64? {
        if knownTail == position { knownTail = ring.published }
        guard knownTail >= position + 48, knownTail - position <= UInt64(SharedRing.capacity),
            ring.word(at: position) >> 32 == RecordKind.packet.rawValue
        else { return nil }
        return ring.word(at: position + 8)
    }

    /// Reads the beginnings of the next packets, as `peek` does.
    ///
    /// - Parameters:
    ///   - prefixes: set to the result.
    ///   - limit: the most packets.
    ///   - size: ends with the packet that reaches this many bytes.
    ///   - isWanted: ends before the first packet for which it is false.
    package mutating func peekPrefixes(
        _ prefixes: inout [PacketPrefix], atMost limit: Int, size: Int, while isWanted: (PacketPrefix) -> Bool
    ) {
        prefixes.removeAll(keepingCapacity: true)
        var offset = 0
        while prefixes.count < limit, offset < size, let prefix = peek(at: offset), isWanted(prefix) {
            prefixes.append(prefix)
            offset += prefix.recordSize
        }
    }

    /// Consumes the packet with this beginning, which is the next record.
    ///
    /// - Returns: its payload after the first eight bytes.
    package mutating func consumeBody(after prefix: PacketPrefix) -> [UInt8] {
        defer { advance(by: prefix.recordSize) }
        return ring.bytes(prefix.payloadSize - 8, at: position + 8 + 48)
    }

    /// The second to the eighth word of the next packet's payload, in host order, of which `peek` has returned the beginning.
    package func peekBody() -> (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) {
        (
            ring.word(at: position + 56), ring.word(at: position + 64), ring.word(at: position + 72),
            ring.word(at: position + 80), ring.word(at: position + 88), ring.word(at: position + 96),
            ring.word(at: position + 104)
        )
    }

    /// Consumes the packet with this beginning, which is the next record, and was read as far as it is needed.
    package mutating func skip(_ prefix: PacketPrefix) { advance(by: prefix.recordSize) }

    /// Copies the payload of the packet at the position into `room`, if it fits.
    private func copyPayload(_ count: Int, in room: inout OutputSpan<UInt8>) -> Bool {
        if room.freeCapacity < count { return false }
        unsafe room.withUnsafeMutableBufferPointer { (buffer, initializedCount) in
            let end = initializedCount + count
            let target = unsafe UnsafeMutableBufferPointer(rebasing: buffer[initializedCount..<end])
            unsafe ring.get(UnsafeMutableRawBufferPointer(target), at: position + 48)
            initializedCount = end
        }
        return true
    }

    private mutating func advance(by size: Int) {
        position += UInt64(size)
        unsafe ring.head.pointee.store(position, ordering: .releasing)
    }

    /// Whether there is something to read, as far as the memory says.
    package var hasMore: Bool { ring.published != position }

    /// Asks for a `wakeUp` packet for records that are published from now on. The caller checks `hasMore` afterwards,
    /// for those that came before.
    package func sleep() { ring.setConsumer(.asleep) }

    /// As `sleep`, but asks for a wake-up through the consumer's wake channel.
    package func park() { ring.setConsumer(.parked) }

    /// Asks for no wake-up.
    package func wake() { ring.setConsumer(.awake) }
}
