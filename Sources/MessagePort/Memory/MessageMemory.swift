// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Bytes that are sent without a copy: a component of a message. `mach_msg_ool_descriptor_t`.
///
/// Its sender has them from a ``LoanedMemory``, or made them of a list. Its receiver reads them in place, and retains
/// them as long as it likes: copies of the value share them, and the last one that is released gives them back. Sending
/// one on is the same in this process; to another process, memory of a third one goes as a copy.
///
/// - Important: Thread safety: any thread.
public struct MessageMemory: Sendable {
    /// How the bytes are protected.
    public enum Grade: Sendable {
        /// The memory is its maker's pool: nothing is copied. Its maker could still change it, or end a loan of another
        /// process early: for peers that one trusts. Values that are checked are to be copied first
        /// (``MessageMemory/copy()``).
        case shared
        /// The memory is a file of its own, whose contents the kernel keeps from changing; nothing is copied. Its making
        /// costs page faults.
        case sealed
        /// The bytes are in this process alone; they were copied on the way, unless they are this process's own.
        case copied
    }

    enum Storage: Sendable {
        case slot(MemorySlot)
        case borrowed(BorrowedMemory)
        case sealed(SharedMemory, SharedDescriptor)
        case bytes([UInt8])
    }

    let storage: Storage
    /// How many bytes there are.
    public let count: Int

    init(_ storage: Storage, count: Int) { (self.storage, self.count) = (storage, count) }

    /// Memory with these bytes, of the grade ``Grade/copied``.
    ///
    /// - Parameter bytes: the bytes, shared until the list changes.
    public init(_ bytes: [UInt8]) { self.init(.bytes(bytes), count: bytes.count) }

    /// How the bytes are protected.
    public var grade: Grade {
        switch storage {
        case .slot, .borrowed: .shared
        case .sealed: .sealed
        case .bytes: .copied
        }
    }

    /// Reads the bytes in place.
    ///
    /// - Parameter body: reads the bytes, which are valid while it runs. Of the grade ``Grade/shared`` another process may
    ///   change them meanwhile.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw.
    public func withBytes<Success: ~Copyable, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success {
        // SAFETY: the memory has that many bytes, and the storage retains it while the body runs. They are bytes: any
        // value that a read finds is valid.
        switch storage {
        case .slot(let slot):
            defer { withExtendedLifetime(slot) {} }
            return try unsafe body(UnsafeRawBufferPointer(start: slot.start, count: count).bytes)
        case .borrowed(let memory):
            defer { withExtendedLifetime(memory) {} }
            return try unsafe body(UnsafeRawBufferPointer(start: memory.start, count: count).bytes)
        case .sealed(let memory, _):
            defer { withExtendedLifetime(memory) {} }
            return try unsafe body(UnsafeRawBufferPointer(start: memory.base, count: count).bytes)
        case .bytes(let bytes): return try unsafe body(bytes.span.bytes)
        }
    }

    /// A copy of the bytes, which nobody else can change.
    ///
    /// - Returns: the bytes.
    public func copy() -> [UInt8] {
        if case .bytes(let bytes) = storage { return bytes }
        return withBytes { bytes in
            // SAFETY: the bytes are copied while they are there.
            unsafe bytes.withUnsafeBytes { unsafe [UInt8]($0) }
        }
    }
}

extension MessageMemory {
    /// The bytes of a count in a message to another process.
    static let sizeOfCount = 8

    /// How many bytes of sealed memory are mapped, which may be more than are meant.
    var mappedSize: Int { if case .sealed(let memory, _) = storage { memory.size } else { 0 } }

    /// Sealed memory that came from another process.
    ///
    /// - Returns: nil when the file is no such memory.
    /// - Throws: when it cannot be mapped now.
    init?(sealedIn file: SharedDescriptor, count: UInt64) throws(SystemError) {
        guard count <= UInt64(MemoryPool.largestLoan),
            let memory = try SharedMemory.mapSealed(file, sizes: max(Int(count), 1)...MemoryPool.largestLoan)
        else { return nil }
        self.init(.sealed(memory, file), count: Int(count))
    }
}

extension MessageMemory: CustomStringConvertible {
    /// How many bytes, and their grade: for people, and of no fixed form.
    public var description: String { "\(count) \(count == 1 ? "byte" : "bytes") of \(grade) memory" }
}

// MARK: - Loans

/// Memory that its owner may write, until it is frozen to be sent: of a ``MemoryPool``, or a file of its own.
///
/// A loan that is dropped goes back to its pool.
///
/// - Important: Thread safety: one thread at a time has it, any thread.
public struct LoanedMemory: ~Copyable, Sendable {
    private enum Storage: ~Copyable {
        case slot(MemorySlot)
        case sealable(SharedMemory, SharedDescriptor)
        case own(MemorySegment)
    }

    private let storage: Storage
    /// How many bytes it has.
    public let count: Int

    init(_ slot: MemorySlot, count: Int) {
        storage = .slot(slot)
        self.count = count
    }

    /// Memory of its own, all zeros, that becomes immutable when it is frozen: ``MessageMemory/Grade/sealed``. Where the
    /// system has no such memory, its bytes are copied into messages to other processes: ``MessageMemory/Grade/copied``.
    ///
    /// - Parameter byteCount: how many bytes, 0 to ``MemoryPool/largestLoan``; others trap.
    /// - Throws: ``PortError/Code/descriptorLimit``; ``PortError/Code/systemCallFailed`` when the system has no memory left.
    public init(sealable byteCount: Int) throws(PortError) {
        if !(0...MemoryPool.largestLoan).contains(byteCount) {
            fatalError("Memory of \(byteCount) bytes is not possible; choose 0 to \(MemoryPool.largestLoan).")
        }
        count = byteCount
        do throws(SystemError) {
            let (memory, file) = try SharedMemory.make(size: max(byteCount, 1), name: "port-memory", isSealed: false)
            storage = .sealable(memory, file)
        } catch {
            if error.isShortage { throw PortError(error) }
            storage = .own(MemorySegment(ofProcess: byteCount))
        }
    }

    /// Writes the bytes in place.
    ///
    /// - Parameter body: writes the bytes, which are valid while it runs.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw.
    public mutating func withBytes<Success: ~Copyable, Failure: Error>(
        _ body: (inout MutableRawSpan) throws(Failure) -> Success
    ) throws(Failure) -> Success {
        // SAFETY: the memory has that many bytes, which this loan alone may write; it is retained while the body runs.
        switch storage {
        case .slot(let slot):
            defer { withExtendedLifetime(slot) {} }
            var span = unsafe UnsafeMutableRawBufferPointer(start: slot.start, count: count).mutableBytes
            return try body(&span)
        case .sealable(let memory, _):
            defer { withExtendedLifetime(memory) {} }
            var span = unsafe UnsafeMutableRawBufferPointer(start: memory.base, count: count).mutableBytes
            return try body(&span)
        case .own(let memory):
            defer { withExtendedLifetime(memory) {} }
            var span = unsafe UnsafeMutableRawBufferPointer(start: memory.base, count: count).mutableBytes
            return try body(&span)
        }
    }

    /// Ends the writing. Nothing is copied, but for sealed memory of which a forked child has a writable mapping.
    ///
    /// - Parameter byteCount: how many of the bytes, from the first one, are sent; all of them unless said otherwise. More than
    ///   there are trap.
    /// - Returns: the memory, to be sent.
    public consuming func freeze(count byteCount: Int? = nil) -> MessageMemory {
        let sent = byteCount ?? count
        if !(0...count).contains(sent) { fatalError("A loan of \(count) bytes has no \(sent); choose 0 to \(count).") }
        switch consume storage {
        case .slot(let slot): return MessageMemory(.slot(slot), count: sent)
        case .own(let memory): return MessageMemory(memory.copy(sent))
        case .sealable(let memory, let file): return Self.seal(memory, file, count: sent)
        }
    }

    private static func seal(_ memory: consuming SharedMemory, _ file: SharedDescriptor, count: Int) -> MessageMemory {
        guard let view = try? SharedMemory.view(of: file, size: memory.size) else {
            return MessageMemory(memory.copy(count))
        }
        // The kernel seals only what has no writable mapping any more.
        var written: SharedMemory? = consume memory
        written = nil
        withExtendedLifetime(written) {}
        do throws(SystemError) {
            try SharedMemory.sealChanges(of: file)
            return MessageMemory(.sealed(view, file), count: count)
        } catch {
            return MessageMemory(view.copy(count))
        }
    }
}
