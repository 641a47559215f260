// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A queue of records from one writer to one reader in shared memory. Docs/WireFormat.md has its layout.
//
//   tail   how many bytes were ever written; the highest bit: the reader takes nothing more
//   head   how many bytes were ever read
//   awake  1 while the reader looks by itself, or has been told; 0 when it wants a bell; 2 while it sleeps on this very word
//
// Writer and reader keep their own positions privately, and believe the other's only within its bounds. What is read is
// copied out first and looked at then: the other side may change the memory at any time.
//
// Who writes publishes, then looks whether the reader is awake. Who reads says that it is not awake, then looks whether
// something was published. All four are sequentially consistent, so one of the two sees the other. The end is decided by
// one word: a record is either before the closing bit, and will be read, or is refused.

import CPortShims
import Synchronization

private let lastIdentity = Atomic<UInt64>(0)

/// One direction of a connection's shared memory.
@safe package final class RecordRing: @unchecked Sendable {
    // Unchecked: the counters are atomic; the bytes are shared as the head of this file says.
    private let memory: SharedMemory  // immutable; keeps what the pointers lead to
    let tail: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    let head: UnsafeMutablePointer<Atomic<UInt64>>  // immutable
    let awake: UnsafeMutablePointer<Atomic<UInt32>>  // immutable
    let bytes: UnsafeMutableRawPointer  // immutable
    /// Its number in this process.
    private let identity = lastIdentity.wrappingAdd(1, ordering: .relaxed).newValue
    /// What was written when this side closed the ring, and never more, whatever the memory says; the largest number before.
    private let lastTail = Atomic<UInt64>(.max)
    /// How many bytes this side has read: the head, as nobody else can change it. Written by the reading end.
    let readCount = Atomic<UInt64>(0)

    /// The bytes of one ring: a power of two.
    package static let capacity = 256 << 10
    /// The counters of all rings, and then their bytes.
    private static let counterSize = 384
    private static let bytesOffset = 4096
    /// The memory of two rings.
    package static let pairSize = bytesOffset + 2 * capacity
    static let closed: UInt64 = 1 << 63

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
    var published: UInt64 {
        let now = unsafe tail.pointee.load(ordering: .sequentiallyConsistent) & ~Self.closed
        let last = lastTail.load(ordering: .sequentiallyConsistent)
        return last == .max ? now : last
    }

    /// Copies bytes in at a position, around the end if need be.
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

    /// Copies bytes out, in a list of their own.
    func bytes(_ count: Int, at position: UInt64) -> [UInt8] {
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

    func putWord(_ word: UInt64, at position: UInt64) { putRawWord(word.littleEndian, at: position) }

    /// Writes eight bytes at a position, which is a multiple of eight, as they lie in memory.
    func putRawWord(_ word: UInt64, at position: UInt64) {
        unsafe rawWord(at: position).pointee.store(word, ordering: .relaxed)
    }

    func word(at position: UInt64) -> UInt64 { UInt64(littleEndian: rawWord(at: position)) }

    /// The eight bytes at a position, which is a multiple of eight, as they lie there. They are looked at once, whatever the
    /// other side does meanwhile: that is what makes the load an atomic one.
    func rawWord(at position: UInt64) -> UInt64 {
        unsafe rawWord(at: position).pointee.load(ordering: .relaxed)
    }

    private func rawWord(at position: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
        unsafe (bytes + (Int(position) & (Self.capacity - 1))).assumingMemoryBound(to: Atomic<UInt64>.self)
    }
}

/// So many bytes are copied at once.
private let copiedBlock = 2048
/// So many bytes go past the caches of who writes them: to fetch lines out of another processor's caches takes up to six times
/// as long as out of memory. Docs/Decisions/0026-long-pieces-go-past-the-caches.md has the measurements.
private let longCopy = 8192

private func copyIn(to target: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) {
    if count < longCopy { return unsafe copyBlocks(to: target, from: source, count: count) }
    unsafe shim_copy_past_caches(target, source, count)
}

private func copyOut(to target: UnsafeMutableRawPointer, from source: UnsafeRawPointer, count: Int) {
    if count < longCopy { return unsafe copyBlocks(to: target, from: source, count: count) }
    unsafe shim_copy_asking_ahead(target, source, count)
}

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
enum RecordKind: UInt64 {
    case packet = 1
    case mark = 2
}

func padded(_ count: Int) -> Int { (count + 7) & ~7 }

extension RecordRing {
    /// What a reader does, as it says.
    package enum ReaderState: UInt32, Sendable {
        /// It wants a bell.
        case asleep = 0
        /// It looks by itself, or has been told.
        case awake = 1
        /// It sleeps on the word that says so.
        case dozing = 2

        /// What a word says that may have been written by anybody.
        fileprivate init(_ word: UInt32) { self = Self(rawValue: word) ?? .asleep }
    }

    /// What the reader does. For the writer.
    package var readerState: ReaderState {
        ReaderState(unsafe awake.pointee.load(ordering: .sequentiallyConsistent))
    }

    /// For the writer: from now on the reader counts as awake.
    ///
    /// - Returns: what it has done until now: unless it was awake, it is to be told.
    func takeSleep() -> ReaderState {
        let state = readerState
        if state == .awake { return .awake }
        return ReaderState(unsafe awake.pointee.exchange(ReaderState.awake.rawValue, ordering: .sequentiallyConsistent))
    }

    /// For the reader: what it does from now on.
    package func setReader(_ state: ReaderState) {
        unsafe awake.pointee.store(state.rawValue, ordering: .sequentiallyConsistent)
    }

    /// For the reader: from now on it looks by itself, unless something else was said since it dozes.
    package func endDoze() {
        _ = unsafe awake.pointee.compareExchange(
            expected: ReaderState.dozing.rawValue, desired: ReaderState.awake.rawValue,
            ordering: .sequentiallyConsistent)
    }

    /// On which the reader sleeps while it dozes.
    package var word: SharedWord {
        unsafe SharedWord(awake, sleepingAt: ReaderState.dozing.rawValue, identity: identity)
    }

    /// Wakes a reader that was dozing.
    ///
    /// - Returns: whether one slept.
    package func wakeReader() -> Bool {
        let number = unsafe awake
        return (try? retrying(.futex) { unsafe shim_wake_all(number) }) ?? 0 > 0
    }
}
