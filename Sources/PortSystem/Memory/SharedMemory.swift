// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Memory that one process writes and another reads: a file without a name (memfd_create(2)). All its pages are
// allocated from the beginning. Its seals fix its size, and forbid new writable mappings and punching holes: so only
// its maker writes to it, or nobody, and an access never faults, whatever the system's policy for overcommitted memory
// (vm.overcommit_memory).

import CPortShims
import PortCLibrary

/// A mapping of shared memory, which ends with the object. The maker may change the contents at any time, unless they are
/// sealed.
@safe package final class SharedMemory: @unchecked Sendable {
    // Unchecked: the pointer never changes, and the types that use the memory define how threads share it.
    /// The beginning of the memory. Only its maker may write there.
    @unsafe package let base: UnsafeMutableRawPointer  // immutable
    package let size: Int  // immutable

    private init(_ size: Int, _ map: () -> Int) throws(SystemError) {
        let address = try retrying(.mmap, map)
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: address) else { throw SystemError(ENOMEM) }
        unsafe self.base = base
        self.size = size
    }

    deinit {
        unsafe munmap(base, size)
    }

    /// Makes memory, all zeros.
    ///
    /// - Parameters:
    ///   - size: its bytes.
    ///   - name: what the kernel shows in a process's list of mappings.
    ///   - isSealed: whether it is sealed already, so that its maker alone writes; otherwise ``sealChanges(of:)`` is
    ///     still possible, and another process must not get it before.
    /// - Returns: its mapping, which is writable, and the file to pass to another process.
    /// - Throws: EINVAL before Linux 5.1, unless it is not sealed; ENOSPC or ENOMEM when there is not enough memory;
    ///   EFBIG when this process's limit for files (RLIMIT_FSIZE) is lower; EMFILE.
    package static func make(
        size: Int, name: StaticString = "port-ring", isSealed: Bool = true
    ) throws(SystemError) -> (memory: SharedMemory, file: SharedDescriptor) {
        // A system that has refused it is not asked again.
        try sysCheckFileSize(size)
        return try Refusals.memory.remember { () throws(SystemError) in
            let file = try makeFile(name)
            _ = try retrying(.ftruncate) { ftruncate(file.rawValue, size) }
            _ = try retrying(.fallocate) { shim_allocate(file.rawValue, 0, size) }
            let memory = try SharedMemory(size) { shim_map_shared(file.rawValue, size, 1) }
            if isSealed { _ = try retrying(.fcntl) { shim_seal(file.rawValue, false) } }
            return (memory, file)
        }
    }

    /// A memory file that cannot be made executable, as `vm.memfd_noexec=2` requires; an older kernel makes it without
    /// that flag.
    private static func makeFile(_ name: StaticString) throws(SystemError) -> SharedDescriptor {
        let name = unsafe UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
        let file = try Refusals.sealedMemory.avoid { () throws(SystemError) in
            try retrying(.memfd_create) { unsafe shim_memory_file(name, true) }
        } otherwise: { () throws(SystemError) in
            try retrying(.memfd_create) { unsafe shim_memory_file(name, false) }
        }
        return SharedDescriptor(owning: file)
    }

    /// Maps a file of this process for reading, whatever its seals.
    package static func view(of file: SharedDescriptor, size: Int) throws(SystemError) -> SharedMemory {
        try SharedMemory(size) { shim_map_sealed(file.rawValue, size) }
    }

    /// Makes the contents of a file immutable, for this process, too. It has no writable mapping any more.
    ///
    /// - Throws: EBUSY while there is one: a forked child has a copy of each.
    package static func sealChanges(of file: SharedDescriptor) throws(SystemError) {
        _ = try retrying(.fcntl) { shim_seal(file.rawValue, true) }
    }

    /// Maps a file that another process has sent, for reading. It must be sealed so that its maker alone writes there.
    ///
    /// - Parameters:
    ///   - file: the file.
    ///   - size: the bytes that it must have.
    ///   - allocates: whether pages that its maker has left out are allocated now: an access that allocates one later
    ///     might fail. Otherwise all of them must be there, so that nobody is charged for what another has announced.
    /// - Returns: nil when it is not such memory.
    /// - Throws: ENOSPC or ENOMEM when pages are missing and cannot be allocated, or there is no room for a mapping.
    package static func map(
        _ file: SharedDescriptor, size: Int, allocates: Bool = true
    ) throws(SystemError) -> SharedMemory? {
        guard try isSealed(file.rawValue, changes: false) else { return nil }
        // Once sealed, neither its size nor its allocated pages change.
        guard try sizes(of: file).size == size else { return nil }
        if allocates {
            _ = try retrying(.fallocate) { shim_allocate(file.rawValue, 0, size) }
        } else if try !isAllocated(file, size) {
            return nil
        }
        return try SharedMemory(size) { shim_map_shared(file.rawValue, size, 0) }
    }

    /// Maps a file that another process has sent, whose contents must be sealed, and all pages there.
    ///
    /// - Parameters:
    ///   - file: the file.
    ///   - allowed: how many bytes it may have.
    /// - Returns: nil when it is not such memory.
    /// - Throws: ENOMEM when there is no room for a mapping.
    package static func mapSealed(
        _ file: SharedDescriptor, sizes allowed: ClosedRange<Int>
    ) throws(SystemError) -> SharedMemory? {
        guard try isSealed(file.rawValue, changes: true) else { return nil }
        let size = try sizes(of: file).size
        guard allowed.contains(size), try isAllocated(file, size) else { return nil }
        return try view(of: file, size: size)
    }

    /// Whether a sealed file has all its pages. Those beyond its end, which its maker may have allocated so that as many may
    /// be missing before it, are released first: its size stays the same, and no more can be added.
    private static func isAllocated(_ file: SharedDescriptor, _ size: Int) throws(SystemError) -> Bool {
        _ = try retrying(.ftruncate) { ftruncate(file.rawValue, size) }
        return try sizes(of: file).allocated >= size
    }

    /// How many bytes a file has, and for how many there are pages.
    private static func sizes(of file: SharedDescriptor) throws(SystemError) -> (size: Int, allocated: Int) {
        var status = stat()
        _ = try retrying(.fstat) { unsafe fstat(file.rawValue, &status) }
        return (Int(status.st_size), Int(status.st_blocks) * blockSize)
    }

    /// In what the kernel counts the memory of a file (stat(2)).
    private static let blockSize = 512

    /// Whether a file's seals forbid other writers, or all changes, and another size.
    private static func isSealed(_ descriptor: CInt, changes: Bool) throws(SystemError) -> Bool {
        var sealed: CInt = 0
        // EINVAL: a file that has no seals.
        let result = try unless(EINVAL) { () throws(SystemError) in
            try retrying(.fcntl) { unsafe shim_is_sealed(descriptor, changes, &sealed) }
        }
        return result != nil && sealed != 0
    }
}

// MARK: - Bytes

extension SharedMemory {
    /// Makes memory with these bytes, for another process.
    ///
    /// - Returns: its file.
    /// - Throws: as ``make(size:)``.
    package static func makeFile(of bytes: [UInt8]) throws(SystemError) -> SharedDescriptor {
        let (memory, file) = try make(size: max(bytes.count, 1))
        // SAFETY: the mapping has that many bytes, and lives until they are copied.
        unsafe bytes.withUnsafeBytes { source in
            if let start = source.baseAddress {
                unsafe memory.base.copyMemory(from: start, byteCount: source.count)
            }
        }
        withExtendedLifetime(memory) {}
        return file
    }

    /// The bytes that another process has put into memory, copied: it may change them at any time.
    ///
    /// - Returns: nil when it is not sealed memory of that size.
    /// - Throws: as ``map(_:size:)``.
    package static func contents(of file: SharedDescriptor, size: Int) throws(SystemError) -> [UInt8]? {
        guard let memory = try map(file, size: max(size, 1)) else { return nil }
        defer { withExtendedLifetime(memory) {} }
        return memory.copy(size)
    }

    /// Its first bytes, copied.
    package func copy(_ count: Int) -> [UInt8] {
        if !(0...size).contains(count) { fatalError("Memory of \(size) bytes has no \(count): copy fewer.") }
        // SAFETY: the mapping has at least that many bytes, and lives until they are copied.
        return unsafe [UInt8](UnsafeRawBufferPointer(start: base, count: count))
    }
}
