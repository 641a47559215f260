// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The side of a ring that writes. One thread at a time uses it.
package struct RingProducer: Sendable {
    /// What became of a record.
    package enum Outcome: Hashable, Sendable {
        /// It is in the ring. A consumer in another state than awake must be woken, unless it has woken by itself: see
        /// `beginWakeUp`.
        case written(SharedRing.ConsumerState)
        /// There is no room for it.
        case full
        /// The consumer accepts no more records.
        case closed
        /// It is in the ring, and the consumer is about to accept no more: `isLastRead` will say whether this record is
        /// read.
        case closing
        /// The other side breaks the format.
        case broken
    }

    package let ring: SharedRing
    private var position: UInt64 = 0
    private var knownHead: UInt64 = 0
    /// The sleep for which the consumer was woken last; no sleep has this initial number.
    private var wokenSleep = UInt64.max
    /// The processor on which it ran when it last wrote.
    private var processor: UInt32 = 0

    /// The producer of a ring to which nothing has been written yet.
    package init(_ ring: SharedRing) {
        self.ring = ring
    }

    /// Room for a mark is always reserved.
    private static let markSize = 8

    /// Writes a packet.
    ///
    /// - Parameters:
    ///   - head: its head.
    ///   - firstWord: the payload's first eight bytes, in memory order; nil when the two arrays have all of it.
    ///   - body: what follows.
    ///   - tail: the end of the payload.
    /// - Returns: what became of it.
    package mutating func write(
        _ head: PacketWords, firstWord: UInt64? = nil, _ body: ArraySlice<UInt8>, tail: ArraySlice<UInt8> = []
    ) -> Outcome {
        let prefixLength = firstWord == nil ? 40 : 48
        let length = prefixLength + body.count + tail.count
        if let failure = makeRoom(for: length) { return failure }
        writePrefix(length, head, firstWord)
        let bodyPosition = position + 8 + UInt64(prefixLength)
        if !body.isEmpty { unsafe body.withUnsafeBytes { unsafe ring.put($0, at: bodyPosition) } }
        if !tail.isEmpty {
            unsafe tail.withUnsafeBytes { unsafe ring.put($0, at: bodyPosition + UInt64(body.count)) }
        }
        return publishRecord(8 + padded(length))
    }

    /// Writes a packet, as above, whose payload is a first word and one array.
    package mutating func write(_ head: PacketWords, firstWord: UInt64, _ body: [UInt8]) -> Outcome {
        let length = 48 + body.count
        if let failure = makeRoom(for: length) { return failure }
        writePrefix(length, head, firstWord)
        if !body.isEmpty { unsafe body.withUnsafeBytes { unsafe ring.put($0, at: position + 56) } }
        return publishRecord(8 + padded(length))
    }

    /// - Returns: why there is no room for a packet of this size; nil when there is.
    private mutating func makeRoom(for length: Int) -> Outcome? {
        let size = 8 + padded(length) + Self.markSize
        if SharedRing.capacity - Int(position - knownHead) >= size { return nil }
        guard learnHead() else { return .broken }
        return SharedRing.capacity - Int(position - knownHead) < size ? .full : nil
    }

    /// Writes the beginning of a packet's record.
    private func writePrefix(_ length: Int, _ head: PacketWords, _ firstWord: UInt64?) {
        ring.putWord(UInt64(length) | RecordKind.packet.rawValue << 32, at: position)
        ring.putRawWord(head.0, at: position + 8)
        ring.putRawWord(head.1, at: position + 16)
        ring.putRawWord(head.2, at: position + 24)
        ring.putRawWord(head.3, at: position + 32)
        ring.putRawWord(head.4, at: position + 40)
        if let firstWord { ring.putRawWord(firstWord, at: position + 48) }
    }

    private mutating func publishRecord(_ size: Int) -> Outcome {
        let outcome = publish(size)
        return outcome == .written(.awake) ? .written(consumerState) : outcome
    }

    /// How the consumer waits; awake also when it was woken from its current sleep.
    package var consumerState: SharedRing.ConsumerState {
        let (state, sleep) = ring.consumerState
        return sleep == wokenSleep ? .awake : state
    }

    /// Marks the consumer's current sleep as woken: it counts as awake until it sleeps again.
    ///
    /// - Returns: how the consumer has waited until now. Unless that is awake, the caller wakes it.
    package mutating func beginWakeUp() -> SharedRing.ConsumerState {
        let (state, sleep) = ring.consumerState
        if sleep == wokenSleep { return .awake }
        wokenSleep = sleep
        return state
    }

    /// Writes a mark. The consumer is not woken for it: the packet for which it stands does that. There is at most one
    /// in the ring.
    ///
    /// - Parameter count: at least this many packets are sent on the socket before the next record is written.
    /// - Returns: whether it was written: there is always room for it.
    package mutating func writeMark(before count: UInt32 = 0) -> Outcome {
        ring.putWord(RecordKind.mark.rawValue << 32 | UInt64(count), at: position)
        return publish(Self.markSize)
    }

    /// Whether the consumer has read everything; nil when the other side breaks the format.
    package mutating func isEmpty() -> Bool? {
        learnHead() ? knownHead == position : nil
    }

    /// Whether the consumer has read something since the head was last read; true also when the other side breaks the
    /// format.
    package mutating func hasConsumerMoved() -> Bool {
        let old = knownHead
        return !learnHead() || knownHead != old
    }

    /// - Returns: false when the head has an impossible value.
    private mutating func learnHead() -> Bool {
        let head = unsafe ring.head.pointee.load(ordering: .acquiring)
        guard head >= knownHead, head <= position, head & 7 == 0 else { return false }
        knownHead = head
        return true
    }

    /// Whether the consumer, which accepts no more records, reads the last one; nil while it has not said so.
    package var isLastRead: Bool? { ring.isRead(upTo: position) }

    /// A store to memory that the consumer polls takes a cache line from it: nothing is stored that is there already.
    private mutating func noteProcessor() {
        let current = sysProcessor()
        if current == processor { return }
        processor = current
        ring.note(processor: current)
    }

    private mutating func publish(_ size: Int) -> Outcome {
        if ring.isClosed { return .closed }
        position += UInt64(size)
        noteProcessor()
        unsafe ring.tail.pointee.store(position, ordering: .sequentiallyConsistent)
        if !ring.isClosed { return .written(.awake) }
        return switch isLastRead {
        case true?: .written(.awake)
        case false?: .closed
        case nil: .closing
        }
    }
}
