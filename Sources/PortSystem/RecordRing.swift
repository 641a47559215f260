// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A queue of records from one writer to one reader in shared memory. Docs/WireFormat.md has its layout.
//
//   tail   how many bytes were ever written; the highest bit: the reader takes nothing more
//   head   how many bytes were ever read
//   awake  1 while the reader looks by itself, or has been rung; 0 when it wants to be rung
//
// Writer and reader keep their own positions privately, and believe the other's only within its bounds. What is read is
// copied out first and looked at then: the other side may change the memory at any time.
//
// Who writes publishes, then looks whether the reader is awake. Who reads says that it is not awake, then looks whether
// something was published. All four are sequentially consistent, so one of the two sees the other. The end is decided by
// one word: a record is either before the closing bit, and will be read, or is refused.

import Synchronization

/// One direction of a connection's shared memory.
@safe package final class RecordRing: @unchecked Sendable {
    // Unchecked: the counters are atomic; the bytes are shared as the head of this file says.
    private let memory: SharedMemory  // immutable; keeps what the pointers lead to
    fileprivate let tail: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    fileprivate let head: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    fileprivate let awake: UnsafeMutablePointer<Atomic<UInt32>>  // immutable
    fileprivate let bytes: UnsafeMutableRawPointer  // immutable
    /// What was written when this side closed the ring, and never more, whatever the memory says; the largest number before.
    private let lastTail = Atomic<UInt64>(.max)
    /// How many bytes this side has read: the head, as nobody else can change it. Written by the reading end.
    fileprivate let readCount = Atomic<UInt64>(0)

    /// The bytes of one ring: a power of two.
    package static let capacity = 256 << 10
    /// The counters of all rings, and then their bytes.
    private static let counterSize = 384
    private static let bytesOffset = 4096
    /// The memory of two rings.
    package static let pairSize = bytesOffset + 2 * capacity
    fileprivate static let closed: UInt64 = 1 << 63

    /// The first or the second ring in a memory of `pairSize` bytes.
    package init(_ memory: SharedMemory, isSecond: Bool) {
        if memory.size != Self.pairSize {
            fatalError("A pair of rings has \(Self.pairSize) bytes, not \(memory.size): map as many.")
        }
        self.memory = memory
        let counters = unsafe memory.base + (isSecond ? Self.counterSize : 0)
        unsafe tail = counters.assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe head = (counters + 128).assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe awake = (counters + 256).assumingMemoryBound(to: Atomic<UInt32>.self)
        unsafe bytes = memory.base + Self.bytesOffset + (isSecond ? Self.capacity : 0)
    }

    /// The reader takes nothing more than was published before. Any thread.
    package func close() {
        let old = unsafe tail.pointee.bitwiseOr(Self.closed, ordering: .sequentiallyConsistent).oldValue
        _ = lastTail.compareExchange(
            expected: .max, desired: old & ~Self.closed, ordering: .sequentiallyConsistent)
    }

    /// Whether the reader takes nothing more.
    package var isClosed: Bool {
        unsafe tail.pointee.load(ordering: .sequentiallyConsistent) & Self.closed != 0
    }

    /// Whether something lies in it that this side has not read, as the tail says. For a quick look from any thread, after
    /// which the reading end decides.
    package var isFilled: Bool { readCount.load(ordering: .relaxed) != published }

    /// How many bytes were written, as the memory says.
    fileprivate var published: UInt64 {
        let now = unsafe tail.pointee.load(ordering: .sequentiallyConsistent) & ~Self.closed
        let last = lastTail.load(ordering: .sequentiallyConsistent)
        return last == .max ? now : last
    }

    /// Copies bytes in at a position, around the end if need be.
    fileprivate func put(_ source: UnsafeRawBufferPointer, at position: UInt64) {
        guard let start = source.baseAddress else { return }
        let offset = Int(position) & (Self.capacity - 1)
        let first = min(source.count, Self.capacity - offset)
        unsafe copyBlocks(to: bytes + offset, from: start, count: first)
        if first < source.count { unsafe copyBlocks(to: bytes, from: start + first, count: source.count - first) }
    }

    /// Copies bytes out.
    fileprivate func get(_ target: UnsafeMutableRawBufferPointer, at position: UInt64) {
        guard let start = target.baseAddress else { return }
        let offset = Int(position) & (Self.capacity - 1)
        let first = min(target.count, Self.capacity - offset)
        unsafe copyBlocks(to: start, from: bytes + offset, count: first)
        if first < target.count { unsafe copyBlocks(to: start + first, from: bytes, count: target.count - first) }
    }

    /// Copies bytes out, in a list of their own.
    fileprivate func bytes(_ count: Int, at position: UInt64) -> [UInt8] {
        if count == 0 { return [] }  // the empty storage is everybody's, and would be written
        let offset = Int(position) & (Self.capacity - 1)
        if count <= SpareBytes.capacity, offset + count <= Self.capacity {
            var list = SpareBytes.take(count)
            let source = unsafe bytes + offset
            unsafe list.withUnsafeMutableBytes { target in
                unsafe target.baseAddress?.copyMemory(from: source, byteCount: count)
            }
            return list
        }
        if count <= copiedBlock, offset + count <= Self.capacity {
            return unsafe [UInt8](UnsafeRawBufferPointer(start: bytes + offset, count: count))
        }
        // Reserved first, the list is made by code for lists of bytes, not for lists of anything.
        var list: [UInt8] = []
        list.reserveCapacity(count)
        list.append(addingCapacity: count) { span in
            unsafe span.withUnsafeMutableBufferPointer { (buffer, initializedCount) in
                let target = unsafe UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count])
                unsafe get(target, at: position)
                initializedCount = count
            }
        }
        return list
    }

    fileprivate func putWord(_ word: UInt64, at position: UInt64) { putRawWord(word.littleEndian, at: position) }

    /// Writes eight bytes at a position, which is a multiple of eight, as they lie in memory.
    fileprivate func putRawWord(_ word: UInt64, at position: UInt64) {
        unsafe rawWord(at: position).pointee.store(word, ordering: .relaxed)
    }

    fileprivate func word(at position: UInt64) -> UInt64 { UInt64(littleEndian: rawWord(at: position)) }

    /// The eight bytes at a position, which is a multiple of eight, as they lie there. They are looked at once, whatever the
    /// other side does meanwhile: that is what makes the load an atomic one.
    fileprivate func rawWord(at position: UInt64) -> UInt64 {
        unsafe rawWord(at: position).pointee.load(ordering: .relaxed)
    }

    private func rawWord(at position: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
        unsafe (bytes + (Int(position) & (Self.capacity - 1))).assumingMemoryBound(to: Atomic<UInt64>.self)
    }
}

/// So many bytes are copied at once.
private let copiedBlock = 2048

/// Copies in blocks. From 4 KiB on, glibc before 2.40 has the processor copy by one instruction (`rep movsb`), which on
/// some processors takes many times as long where the target lies up to 63 bytes behind the source, in whatever page.
private func copyBlocks(to target: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) {
    var start = 0
    while count - start > copiedBlock {
        unsafe (target + start).copyMemory(from: source + start, byteCount: copiedBlock)
        start += copiedBlock
    }
    unsafe (target + start).copyMemory(from: source + start, byteCount: count - start)
}

/// What a record is.
private enum RecordKind: UInt64 {
    case packet = 1
    case mark = 2
}

private func padded(_ count: Int) -> Int { (count + 7) & ~7 }

/// The writing end of a ring. One thread at a time uses it.
package struct RecordWriter: Sendable {
    /// What became of a record.
    package enum Outcome: Hashable, Sendable {
        /// It is in the ring. A reader that sleeps has to be rung, when it has not woken by itself: see `takeSleep`.
        case written(isAsleep: Bool)
        /// There is no room for it.
        case full
        /// The reader takes nothing more.
        case closed
        /// The other side breaks the format.
        case broken
    }

    package let ring: RecordRing
    private var position: UInt64 = 0
    private var knownHead: UInt64 = 0

    /// The writing end of a ring in which nothing was written yet.
    package init(_ ring: RecordRing) {
        self.ring = ring
    }

    /// Room for a mark is always kept.
    private static let markSize = 8

    /// Writes a packet.
    ///
    /// - Parameters:
    ///   - head: its head.
    ///   - lead: the payload's first eight bytes, as they lie in memory; nil when all of it lies in the two lists.
    ///   - body: what comes then.
    ///   - tail: the end of the payload.
    /// - Returns: what became of it.
    package mutating func write(
        _ head: PacketWords, lead: UInt64? = nil, _ body: ArraySlice<UInt8>, tail: ArraySlice<UInt8> = []
    ) -> Outcome {
        let frontLength = lead == nil ? 40 : 48
        let length = frontLength + body.count + tail.count
        if let failure = makeRoom(for: length) { return failure }
        putFront(length, head, lead)
        let bodyPosition = position + 8 + UInt64(frontLength)
        if !body.isEmpty { unsafe body.withUnsafeBytes { unsafe ring.put($0, at: bodyPosition) } }
        if !tail.isEmpty {
            unsafe tail.withUnsafeBytes { unsafe ring.put($0, at: bodyPosition + UInt64(body.count)) }
        }
        return publishRecord(8 + padded(length))
    }

    /// Writes a packet, as above, whose payload is a lead and one list.
    package mutating func write(_ head: PacketWords, lead: UInt64, _ body: [UInt8]) -> Outcome {
        let length = 48 + body.count
        if let failure = makeRoom(for: length) { return failure }
        putFront(length, head, lead)
        if !body.isEmpty { unsafe body.withUnsafeBytes { unsafe ring.put($0, at: position + 56) } }
        return publishRecord(8 + padded(length))
    }

    /// - Returns: why there is no room for a packet of so many bytes, if there is none.
    private mutating func makeRoom(for length: Int) -> Outcome? {
        let size = 8 + padded(length) + Self.markSize
        if RecordRing.capacity - Int(position - knownHead) >= size { return nil }
        guard learnHead() else { return .broken }
        return RecordRing.capacity - Int(position - knownHead) < size ? .full : nil
    }

    /// Writes what a record of a packet begins with.
    private func putFront(_ length: Int, _ head: PacketWords, _ lead: UInt64?) {
        ring.putWord(UInt64(length) | RecordKind.packet.rawValue << 32, at: position)
        ring.putRawWord(head.0, at: position + 8)
        ring.putRawWord(head.1, at: position + 16)
        ring.putRawWord(head.2, at: position + 24)
        ring.putRawWord(head.3, at: position + 32)
        ring.putRawWord(head.4, at: position + 40)
        if let lead { ring.putRawWord(lead, at: position + 48) }
    }

    private mutating func publishRecord(_ size: Int) -> Outcome {
        let outcome = publish(size)
        return outcome == .written(isAsleep: false) ? .written(isAsleep: ring.isAsleep) : outcome
    }

    /// Rings for a reader that was asleep when something was written.
    ///
    /// - Returns: whether it is to be told; from now on it counts as awake. False when it has woken by itself.
    package func takeSleep() -> Bool { ring.takeSleep() }

    /// Writes a mark. The reader is not rung for it: what it stands for does that. There is at most one in the ring.
    ///
    /// - Parameter count: so many packets at least are sent otherwise before the next record is written.
    /// - Returns: whether it was written: there is always room for it.
    package mutating func writeMark(before count: UInt32 = 0) -> Outcome {
        ring.putWord(RecordKind.mark.rawValue << 32 | UInt64(count), at: position)
        return publish(Self.markSize)
    }

    /// Whether the reader has read all; nil when the other side breaks the format.
    package mutating func isEmpty() -> Bool? {
        learnHead() ? knownHead == position : nil
    }

    /// Whether the reader has read something since the head was looked at last; also when the other side breaks the format.
    package mutating func hasReaderMoved() -> Bool {
        let old = knownHead
        return !learnHead() || knownHead != old
    }

    /// - Returns: false when the head lies where it cannot be.
    private mutating func learnHead() -> Bool {
        let head = unsafe ring.head.pointee.load(ordering: .acquiring)
        guard head >= knownHead, head <= position, head & 7 == 0 else { return false }
        knownHead = head
        return true
    }

    private mutating func publish(_ size: Int) -> Outcome {
        let (next, closed) = (position + UInt64(size), RecordRing.closed)
        let (exchanged, original) = unsafe ring.tail.pointee.compareExchange(
            expected: position, desired: next, ordering: .sequentiallyConsistent)
        guard exchanged else { return original == position | closed ? .closed : .broken }
        position = next
        return .written(isAsleep: false)
    }
}

extension RecordRing {
    /// Whether the reader wants to be rung. For the writer.
    package var isAsleep: Bool { unsafe awake.pointee.load(ordering: .sequentiallyConsistent) == 0 }

    /// For the writer.
    ///
    /// - Returns: whether the reader slept; from now on it counts as awake.
    fileprivate func takeSleep() -> Bool {
        if !isAsleep { return false }
        return unsafe awake.pointee.exchange(1, ordering: .sequentiallyConsistent) == 0
    }

    /// For the reader: from now on it has to be rung, or looks by itself.
    fileprivate func setAwake(_ isAwake: Bool) {
        unsafe awake.pointee.store(isAwake ? 1 : 0, ordering: .sequentiallyConsistent)
    }
}

/// The beginning of a packet that lies in a ring, copied out of it.
package struct PacketFront: Sendable {
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
package struct RecordReader: Sendable {
    /// What a look gave.
    package enum Outcome: Sendable {
        case packet(PacketWords, payload: [UInt8])
        /// So many packets at least come otherwise before the next record.
        case mark(before: Int)
        case empty
        /// The other side breaks the format.
        case broken
    }

    package let ring: RecordRing
    private let limit: Int
    private var position: UInt64 = 0
    private var knownTail: UInt64 = 0

    /// The reading end of a ring of which nothing was read yet.
    ///
    /// - Parameters:
    ///   - ring: the ring.
    ///   - limit: the most bytes of a packet, its head included.
    package init(_ ring: RecordRing, limit: Int) {
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
        guard knownTail > position, knownTail - position <= UInt64(RecordRing.capacity), knownTail & 7 == 0 else {
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
    package mutating func front(behind seen: Int = 0) -> PacketFront? {
        let start = position + UInt64(seen)
        if knownTail == start { knownTail = ring.published }
        guard knownTail >= start + 56, knownTail - position <= UInt64(RecordRing.capacity), knownTail & 7 == 0
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
        return PacketFront(head: head, lead: ring.rawWord(at: start + 48), payloadSize: length - 40)
    }

    /// Looks at the beginnings of the packets that come next, as `front` does.
    ///
    /// - Parameters:
    ///   - fronts: set to what is found.
    ///   - limit: the most packets.
    ///   - size: it ends with the packet that reaches so many bytes.
    ///   - isWanted: it ends before the first packet that is not.
    package mutating func seeFronts(
        _ fronts: inout [PacketFront], atMost limit: Int, size: Int, while isWanted: (PacketFront) -> Bool
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
    package mutating func takeBody(behind front: PacketFront) -> [UInt8] {
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
        ring.readCount.store(position, ordering: .relaxed)
        unsafe ring.head.pointee.store(position, ordering: .releasing)
    }

    /// Whether something is there to be read, as far as the memory says.
    package var hasMore: Bool { ring.published != position }

    /// Wants to be rung for what is published from now on. What `hasMore` says afterwards decides whether that is enough.
    package func sleep() { ring.setAwake(false) }

    /// Does not want to be rung.
    package func wake() { ring.setAwake(true) }
}
