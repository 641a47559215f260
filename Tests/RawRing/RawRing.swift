// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
package import PortSystem

/// The memory of a pair of rings as the other side has it, which may write whatever it wants there, at any time. Tests
/// of the rings and their fuzzer share it.
///
/// Docs/WireFormat.md says what the words mean. Nothing guards them: that is what the ends of a ring must bear.
package final class RawRing: Sendable {
    /// The memory of the ends that are tested.
    package let memory: SharedMemory
    /// What a peer maps.
    package let file: SharedDescriptor
    private nonisolated(unsafe) let words: UnsafeMutablePointer<UInt64>  // immutable; the memory is anybody's

    /// The index of the word before the first record of the first ring.
    package static let records = 512
    /// How many words of records each ring has.
    package static let recordWords = RecordRing.capacity / 8
    /// The bit of a tail that says that no more comes.
    package static let closed: UInt64 = 1 << 63

    /// Makes the memory.
    ///
    /// - Throws: why there is none.
    package convenience init() throws(SystemError) {
        let (memory, file) = try SharedMemory.make(size: RecordRing.pairSize)
        try self.init(memory, file)
    }

    /// Maps the memory that somebody else has made.
    ///
    /// - Parameter file: its descriptor.
    /// - Throws: why it cannot be mapped.
    package convenience init(mapping file: SharedDescriptor) throws(SystemError) {
        guard let memory = try SharedMemory.map(file, size: RecordRing.pairSize) else { throw SystemError(EINVAL) }
        try self.init(memory, file)
    }

    private init(_ memory: SharedMemory, _ file: SharedDescriptor) throws(SystemError) {
        self.memory = memory
        self.file = file
        let mapped = mmap(nil, RecordRing.pairSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.rawValue, 0)
        guard let mapped, mapped != MAP_FAILED else { throw SystemError(errno) }
        words = mapped.assumingMemoryBound(to: UInt64.self)
    }

    deinit { munmap(words, RecordRing.pairSize) }

    /// A word of the memory.
    package subscript(index: Int) -> UInt64 {
        get { words[index] }
        set { words[index] = newValue }
    }

    /// How many bytes were written into the first ring.
    package var tail: UInt64 {
        get { words[0] }
        set { words[0] = newValue }
    }

    /// How many bytes were read of the first ring.
    package var head: UInt64 {
        get { words[16] }
        set { words[16] = newValue }
    }

    /// How many bytes were written into the second ring.
    package var backTail: UInt64 { words[48] }

    /// How many bytes were read of the second ring.
    package var backHead: UInt64 {
        get { words[48 + 16] }
        set { words[48 + 16] = newValue }
    }

    /// Bytes of the first ring's records; those beyond its end are at its beginning.
    package func recordBytes(from start: UInt64, count: Int) -> [UInt8] {
        let bytes = UnsafeRawBufferPointer(start: words + Self.records, count: RecordRing.capacity)
        let first = Int(start % UInt64(RecordRing.capacity))
        let beforeEnd = min(count, RecordRing.capacity - first)
        return Array(bytes[first..<first + beforeEnd]) + Array(bytes[..<(count - beforeEnd)])
    }
}
