// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A queue of records from one producer to one consumer in shared memory. Docs/WireFormat.md has its layout.
//
// Each side has memory that it alone writes, and the other side maps for reading. The producer's has the bytes and
//
//   tail       how many bytes were ever written
//   processor  the one on which the producer ran when it last wrote, numbered from one; zero: not known. A hint
//
// The consumer's has
//
//   head   how many bytes were ever read
//   state  the lowest two bits say how the consumer finds a record: 0 by a `wakeUp` packet on the socket, 1 by polling,
//          2 through its wake channel. The rest grows by one each time the state is set, so each sleep has a value of
//          its own, and the producer remembers for which one it has woken the consumer
//   end    zero; 1 << 62 while the consumer closes the ring; then 1 << 63 and how many bytes it reads in all
//
// Producer and consumer each hold their own position privately, and trust the other's only within its bounds. What is
// read is first copied out and then checked: the producer may change the memory at any time.
//
// The producer publishes the tail, then reads the state. The consumer sets the state, then reads the tail. All four
// accesses are sequentially consistent, so one of the two sees the other. The end is decided in the same way: the
// consumer announces that it closes the ring, then reads the tail, and publishes how far it reads; the producer
// publishes the tail, then reads the end. A record is either before the end, and will be read, or is refused; while the
// consumer is between its two steps, the producer waits for the second.

import CPortShims
import Synchronization

/// One direction of a connection's shared memory.
@safe package final class SharedRing: @unchecked Sendable {
    // Unchecked: the counters are atomic; the bytes are shared as the comment above says.
    private let producerMemory: SharedMemory  // immutable; owns the memory behind the pointers
    private let consumerMemory: SharedMemory  // immutable; the same
    let tail: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    private let processor: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    let head: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    private let state: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    private let end: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    let bytes: UnsafeMutableRawPointer  // immutable

    /// The size of one ring in bytes: a power of two. The same for all processes, by Docs/WireFormat.md.
    package static let capacity = 256 << 10
    private static let bytesOffset = 4096
    /// The size of one side's memory: what it writes for its own ring and for the other's.
    package static let memorySize = bytesOffset + capacity
    private static let isEnding: UInt64 = 1 << 62
    private static let hasEnded: UInt64 = 1 << 63

    /// The ring of a producer.
    ///
    /// - Parameters:
    ///   - producer: the memory that the producer has made.
    ///   - consumer: the memory that the consumer has made.
    package init(from producer: SharedMemory, to consumer: SharedMemory) {
        for size in [producer.size, consumer.size] where size != Self.memorySize {
            fatalError("Memory for rings has \(Self.memorySize) bytes, not \(size): map as many.")
        }
        (producerMemory, consumerMemory) = (producer, consumer)
        unsafe tail = producer.base.assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe processor = (producer.base + 8).assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe bytes = producer.base + Self.bytesOffset
        unsafe head = (consumer.base + 128).assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe state = (consumer.base + 256).assumingMemoryBound(to: Atomic<UInt64>.self)
        unsafe end = (consumer.base + 264).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    /// For the producer: notes on which processor it runs.
    func note(processor number: UInt32) { unsafe processor.pointee.store(UInt64(number), ordering: .relaxed) }

    /// For the consumer: the processor on which the producer ran when it last wrote, as it says; zero when that is not
    /// known.
    package var producerProcessor: UInt64 { unsafe processor.pointee.load(ordering: .relaxed) }

    /// For the consumer: accepts no records beyond those published so far. Any thread.
    package func close() {
        let isFirst = unsafe end.pointee.compareExchange(
            expected: 0, desired: Self.isEnding, ordering: .sequentiallyConsistent
        ).exchanged
        if isFirst { finishClosing() }
    }

    /// The second step of `close`, which any thread may make: any tail that is read after the first step is valid.
    private func finishClosing() {
        let last = unsafe tail.pointee.load(ordering: .sequentiallyConsistent) & (Self.isEnding - 1)
        _ = unsafe end.pointee.compareExchange(
            expected: Self.isEnding, desired: last | Self.hasEnded, ordering: .sequentiallyConsistent)
    }

    /// Whether the consumer accepts no more records, or is about to say so.
    package var isClosed: Bool { unsafe end.pointee.load(ordering: .sequentiallyConsistent) != 0 }

    /// Whether the ring has data that this side has not read, according to the tail. A quick check for any thread of
    /// the consumer's process; the consumer then decides.
    package var isFilled: Bool { unsafe head.pointee.load(ordering: .relaxed) != published }

    /// For the consumer: how many bytes were written, according to the memory; once the ring is closed, as fixed then.
    var published: UInt64 {
        let now = unsafe tail.pointee.load(ordering: .sequentiallyConsistent)
        var last = unsafe end.pointee.load(ordering: .sequentiallyConsistent)
        if last == 0 { return now }
        if last == Self.isEnding {
            finishClosing()
            last = unsafe end.pointee.load(ordering: .sequentiallyConsistent)
        }
        return last & ~Self.hasEnded
    }

    /// For the producer: whether everything published up to a position is read, once the consumer has closed the ring;
    /// nil while the consumer is between the two steps of `close`.
    func isRead(upTo position: UInt64) -> Bool? {
        let last = unsafe end.pointee.load(ordering: .sequentiallyConsistent)
        return last & Self.hasEnded != 0 ? last & ~Self.hasEnded >= position : nil
    }

    /// Copies bytes in at a position, wrapping around at the end.
    func put(_ source: UnsafeRawBufferPointer, at position: UInt64) {
        guard let start = source.baseAddress else { return }
        let offset = Int(position) & (Self.capacity - 1)
        let first = min(source.count, Self.capacity - offset)
        unsafe copyIn(to: bytes + offset, from: start, count: first)
        if first < source.count { unsafe copyIn(to: bytes, from: start + first, count: source.count - first) }
    }

    /// Copies bytes out.
    func get(_ target: UnsafeMutableRawBufferPointer, at position: UInt64) {
        guard let start = target.baseAddress else { return }
        let offset = Int(position) & (Self.capacity - 1)
        let first = min(target.count, Self.capacity - offset)
        unsafe copyOut(to: start, from: bytes + offset, count: first)
        if first < target.count { unsafe copyOut(to: start + first, from: bytes, count: target.count - first) }
    }

    /// Copies bytes out into an array of their own.
    func bytes(_ count: Int, at position: UInt64) -> [UInt8] {
        if count == 0 { return [] }  // the empty array's storage is shared by all, and would be written
        let offset = Int(position) & (Self.capacity - 1)
        if count <= BufferPool.capacity, offset + count <= Self.capacity {
            var list = BufferPool.take(count)
            let source = unsafe bytes + offset
            unsafe list.withUnsafeMutableBytes { target in
                unsafe target.baseAddress?.copyMemory(from: source, byteCount: count)
            }
            return list
        }
        if count <= Tuning.copiedBlock, offset + count <= Self.capacity {
            return unsafe [UInt8](UnsafeRawBufferPointer(start: bytes + offset, count: count))
        }
        // With its capacity reserved first, the array is filled by code specialized for bytes, not by generic code.
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

    func putWord(_ word: UInt64, at position: UInt64) { putRawWord(word.littleEndian, at: position) }

    /// Writes eight bytes, in memory order, at a position that is a multiple of eight.
    func putRawWord(_ word: UInt64, at position: UInt64) {
        unsafe rawWord(at: position).pointee.store(word, ordering: .relaxed)
    }

    func word(at position: UInt64) -> UInt64 { UInt64(littleEndian: rawWord(at: position)) }

    /// The eight bytes, in memory order, at a position that is a multiple of eight. They are read exactly once,
    /// whatever the other side does meanwhile: that is why the load is atomic.
    func rawWord(at position: UInt64) -> UInt64 {
        unsafe rawWord(at: position).pointee.load(ordering: .relaxed)
    }

    private func rawWord(at position: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
        unsafe (bytes + (Int(position) & (Self.capacity - 1))).assumingMemoryBound(to: Atomic<UInt64>.self)
    }
}

private func copyIn(to target: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) {
    if count < Tuning.longCopy { return unsafe copyBlocks(to: target, from: source, count: count) }
    unsafe shim_copy_non_temporally(target, source, count)
}

private func copyOut(to target: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) {
    if count < Tuning.longCopy { return unsafe copyBlocks(to: target, from: source, count: count) }
    unsafe shim_copy_prefetching(target, source, count)
}

/// Copies in blocks of a size for which the C library needs no special instruction.
private func copyBlocks(to target: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) {
    var start = 0
    while count - start > Tuning.copiedBlock {
        unsafe (target + start).copyMemory(from: source + start, byteCount: Tuning.copiedBlock)
        start += Tuning.copiedBlock
    }
    unsafe (target + start).copyMemory(from: source + start, byteCount: count - start)
}

enum RecordKind: UInt64 {
    case packet = 1
    case mark = 2
}

func padded(_ count: Int) -> Int { (count + 7) & ~7 }

extension SharedRing {
    /// How a consumer waits, as it says itself.
    package enum ConsumerState: UInt32, Sendable {
        /// It needs a `wakeUp` packet.
        case asleep = 0
        /// It polls, or has been woken.
        case awake = 1
        /// It sleeps where its wake channel is watched.
        case parked = 2

        /// Decodes a word, to which the consumer may have written anything.
        fileprivate init(_ word: UInt32) { self = Self(rawValue: word) ?? .asleep }
    }

    /// For the producer: how the consumer waits, and the number of its current sleep.
    var consumerState: (state: ConsumerState, sleep: UInt64) {
        let word = unsafe state.pointee.load(ordering: .sequentiallyConsistent)
        return (ConsumerState(UInt32(word & 3)), word)
    }

    /// For the consumer: sets how it waits from now on. One thread at a time.
    package func setConsumer(_ wanted: ConsumerState) {
        let next = unsafe (state.pointee.load(ordering: .relaxed) >> 2 &+ 1) << 2
        unsafe state.pointee.store(next | UInt64(wanted.rawValue), ordering: .sequentiallyConsistent)
    }

    /// For the consumer: it polls from now on, unless another state was set since it parked.
    package func unpark() {
        if consumerState.state == .parked { setConsumer(.awake) }
    }
}

/// The first 40 bytes of a packet, as five numbers in memory order.
package typealias PacketWords = (UInt64, UInt64, UInt64, UInt64, UInt64)

/// The 40 bytes.
package func bytes(of words: PacketWords) -> [UInt8] {
    unsafe withUnsafeBytes(of: words) { unsafe Array($0) }
}

/// The first 40 bytes as words; nil when there are fewer.
package func packetWords(of bytes: [UInt8]) -> PacketWords? {
    if bytes.count < MemoryLayout<PacketWords>.size { return nil }
    return unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(as: PacketWords.self) }
}

/// The beginning of a packet in a ring, copied out of it.
package struct PacketPrefix: Sendable {
    package let head: PacketWords
    /// The first eight bytes of its payload, in memory order.
    package let firstWord: UInt64
    /// The size of its payload: at least eight bytes.
    package let payloadSize: Int
    /// The number of bytes of its record in the ring.
    package var recordSize: Int { 8 + padded(40 + payloadSize) }

    package init(head: PacketWords, firstWord: UInt64, payloadSize: Int) {
        (self.head, self.firstWord, self.payloadSize) = (head, firstWord, payloadSize)
    }
}
