// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
package import PortSystem

/// The memory of one side of a pair of rings, as a misbehaving side has it: it writes whatever it wants there, at any
/// time. Tests of the rings and their fuzzer share it.
///
/// Docs/WireFormat.md says what the words mean. They are unguarded: the other side must cope with that.
package final class RawRing: Sendable {
    /// The memory, as its maker has it.
    package let memory: SharedMemory
    /// What the other side maps.
    package let file: SharedDescriptor

    /// The index of the word before the first record.
    package static let records = 512
    /// How many words there are in all.
    package static let wordCount = SharedRing.memorySize / 8
    /// How many words of records there are.
    package static let recordWords = SharedRing.capacity / 8
    /// The bit of an end that says that no more is read.
    package static let closed: UInt64 = 1 << 63

    /// Makes the memory.
    ///
    /// - Throws: why there is none.
    package init() throws(SystemError) {
        (memory, file) = try SharedMemory.make(size: SharedRing.memorySize)
    }

    /// Maps the memory as the other side has it.
    ///
    /// - Throws: why it cannot be mapped.
    package func mapped() throws(SystemError) -> SharedMemory {
        guard let mapped = try SharedMemory.map(file, size: SharedRing.memorySize) else { throw SystemError(EINVAL) }
        return mapped
    }

    private var words: UnsafeMutablePointer<UInt64> { memory.base.assumingMemoryBound(to: UInt64.self) }

    /// A word of the memory.
    package subscript(index: Int) -> UInt64 {
        get { words[index] }
        set { words[index] = newValue }
    }

    /// How many bytes this side has written into its ring.
    package var tail: UInt64 {
        get { words[0] }
        set { words[0] = newValue }
    }

    /// How many bytes this side has read of the other's ring.
    package var head: UInt64 {
        get { words[16] }
        set { words[16] = newValue }
    }

    /// How this side waits for records of the other's ring.
    package var state: UInt64 {
        get { words[32] }
        set { words[32] = newValue }
    }

    /// Whether, and how far, this side has closed the other's ring.
    package var end: UInt64 {
        get { words[33] }
        set { words[33] = newValue }
    }

    /// Bytes of the records; those beyond the end are at the beginning.
    package func recordBytes(from start: UInt64, count: Int) -> [UInt8] {
        let bytes = UnsafeRawBufferPointer(start: words + Self.records, count: SharedRing.capacity)
        let first = Int(start % UInt64(SharedRing.capacity))
        let beforeEnd = min(count, SharedRing.capacity - first)
        return Array(bytes[first..<first + beforeEnd]) + Array(bytes[..<(count - beforeEnd)])
    }
}
