// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The memory of some slots of a pool: a memory file that other processes may map for reading; where the system refuses
/// that, memory of this process, whose contents are copied into messages to others.
@safe final class MemorySegment: @unchecked Sendable {
    // @unchecked: the pointer never changes; a slot's bytes are written by the one loan of it, and read afterwards.
    private enum Storage {
        case shared(SharedMemory, SharedDescriptor)
        case own
    }

    /// Unique in this process.
    let number: UInt64  // immutable
    let size: Int  // immutable
    private let storage: Storage  // immutable
    /// The beginning of the memory.
    @unsafe let base: UnsafeMutableRawPointer  // immutable
    private let forkGuard = ForkGuard()  // immutable

    private static let lastNumber = Atomic<UInt64>(0)

    /// - Throws: `descriptorLimit`, `systemCallFailed` when the system has no memory left.
    init(size: Int) throws(PortError) {
        number = Self.lastNumber.add(1, ordering: .relaxed).newValue
        self.size = size
        do throws(SystemError) {
            let (memory, file) = try SharedMemory.make(size: size, name: "port-memory")
            storage = .shared(memory, file)
            unsafe base = memory.base
        } catch {
            if error.isShortage { throw PortError(error) }
            storage = .own
            unsafe base = Self.allocate(size)
        }
    }

    /// Memory of this process, which is never lent.
    init(ofProcess size: Int) {
        (number, self.size, storage) = (0, size, .own)
        unsafe base = Self.allocate(size)
    }

    private static func allocate(_ size: Int) -> UnsafeMutableRawPointer {
        let base = UnsafeMutableRawPointer.allocate(byteCount: max(size, 1), alignment: Tuning.smallestSlot)
        unsafe base.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        return unsafe base
    }

    deinit {
        if case .own = storage { unsafe base.deallocate() }
    }

    /// Its first bytes, copied.
    func copy(_ count: Int) -> [UInt8] {
        // SAFETY: the caller asks for no more than it has, and nobody writes any more.
        unsafe [UInt8](UnsafeRawBufferPointer(start: base, count: count))
    }

    /// The file for other processes; nil where there is none.
    var file: SharedDescriptor? { if case .shared(_, let file) = storage { file } else { nil } }
}

/// One loan's memory, until this is deinitialized: then its pool has it back.
@safe final class MemorySlot: Sendable {
    let pool: MemoryPool  // immutable
    let segment: MemorySegment  // immutable
    private let slot: SlotTable.Slot  // immutable
    let size: Int  // immutable

    init(_ slot: SlotTable.Slot, of segment: MemorySegment, size: Int, from pool: MemoryPool) {
        (self.slot, self.segment, self.size, self.pool) = (slot, segment, size, pool)
    }

    deinit { pool.giveBack(slot) }

    var offset: Int { slot.index * size }
    @unsafe var start: UnsafeMutableRawPointer { unsafe segment.base + offset }
}
