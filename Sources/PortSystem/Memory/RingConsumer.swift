// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The beginning of a packet that lies in a ring, copied out of it.
package struct PacketPrefix: Sendable {
    package let head: PacketWords
    /// The first eight bytes of its payload, as they lie in memory.
    package let lead: UInt64
    /// The bytes of its payload: at least eight.
    package let payloadSize: Int
    /// The bytes that it takes in the ring.
    package var recordSize: Int { 8 + padded(40 + payloadSize) }

    package init(head: PacketWords, lead: UInt64, payloadSize: Int) {
        (self.head, self.lead, self.payloadSize) = (head, lead, payloadSize)
    }
}

/// The reading end of a ring. One thread at a time uses it.
package struct RingConsumer: Sendable {
    /// What a look gave.
    package enum Outcome: Sendable {
        case packet(PacketWords, payload: [UInt8])
        /// So many packets at least come otherwise before the next record.
        case mark(before: Int)
        case empty
        /// The other side breaks the format.
        case broken
    }

    package let ring: SharedRing
    private let limit: Int
    private var position: UInt64 = 0
    private var knownTail: UInt64 = 0

    /// The reading end of a ring of which nothing was read yet.
    ///
    /// - Parameters:
    ///   - ring: the ring.
    ///   - limit: the most bytes of a packet, its head included.
    package init(_ ring: SharedRing, limit: Int) {
        self.ring = ring
        self.limit = limit
    }

    /// Takes the next record, and a packet's payload in an array of its own.
    package mutating func read() -> Outcome {
        var none = OutputSpan<UInt8>()
        return read(into: &none)
    }

    /// Takes the next record. Where there is room for a packet's payload, it is written there, and there is none in the outcome.
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
            let payload = land(length - 40, in: &room) ? [] : ring.bytes(length - 40, at: position + 48)
            advance(by: 8 + padded(length))
            return .packet(head, payload: payload)
        default: return .broken
        }
    }

    /// The beginning of a record, if that is a packet whose payload has eight bytes or more. It stays in the ring: `takeBody`
    /// takes it when it is next, or `read`, which also says what else there is.
    ///
    /// - Parameter seen: the bytes of the packets before it whose beginnings were seen.
    /// - Returns: nil when there is none such.
    package mutating func front(behind seen: Int = 0) -> PacketPrefix? {
        let start = position + UInt64(seen)
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
        return PacketPrefix(head: head, lead: ring.rawWord(at: start + 48), payloadSize: length - 40)
    }

    /// Looks at the beginnings of the packets that come next, as `front` does.
    ///
    /// - Parameters:
    ///   - fronts: set to what is found.
    ///   - limit: the most packets.
    ///   - size: it ends with the packet that reaches so many bytes.
    ///   - isWanted: it ends before the first packet that is not.
    package mutating func seeFronts(
        _ fronts: inout [PacketPrefix], atMost limit: Int, size: Int, while isWanted: (PacketPrefix) -> Bool
    ) {
        fronts.removeAll(keepingCapacity: true)
        var seen = 0
        while fronts.count < limit, seen < size, let front = front(behind: seen), isWanted(front) {
            fronts.append(front)
            seen += front.recordSize
        }
    }

    /// Takes the packet that begins so, which is the next record.
    ///
    /// - Returns: its payload behind the first eight bytes.
    package mutating func takeBody(behind front: PacketPrefix) -> [UInt8] {
        defer { advance(by: front.recordSize) }
        return ring.bytes(front.payloadSize - 8, at: position + 8 + 48)
    }

    /// Copies the payload of the packet at the position out to where there is room for it.
    private func land(_ count: Int, in room: inout OutputSpan<UInt8>) -> Bool {
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

    /// Whether something is there to be read, as far as the memory says.
    package var hasMore: Bool { ring.published != position }

    /// Wants to be rung for what is published from now on. What `hasMore` says afterwards decides whether that is enough.
    package func sleep() { ring.setReader(.asleep) }

    /// As `sleep`; but the reader's wake channel will do.
    package func park() { ring.setReader(.parked) }

    /// Does not want to be rung.
    package func wake() { ring.setReader(.awake) }
}
