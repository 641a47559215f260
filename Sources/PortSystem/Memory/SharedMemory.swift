// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Memory that one process writes and another reads: a file without a name (memfd_create(2)). All its pages are
// allocated from the beginning. Its seals fix its size, and forbid new writable mappings and punching holes: so only
// its maker writes to it, and an access never faults, whatever the system's policy for overcommitted memory
// (vm.overcommit_memory).

import CPortShims
import PortCLibrary

/// A mapping of shared memory, which ends with the object. The maker may change the contents at any time.
@safe package final class SharedMemory: @unchecked Sendable {
    // Unchecked: the pointer never changes, and the types that use the memory define how threads share it.
    /// The beginning of the memory. Only its maker may write there.
    @unsafe package let base: UnsafeMutableRawPointer  // immutable
    package let size: Int  // immutable

    private init(mapping descriptor: CInt, size: Int, isWritable: Bool) throws(SystemError) {
        let address = try retrying(.mmap) { shim_map_shared(descriptor, size, isWritable ? 1 : 0) }
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: address) else { throw SystemError(ENOMEM) }
        unsafe self.base = base
        self.size = size
    }

    deinit {
        unsafe munmap(base, size)
    }

    /// Makes memory, all zeros.
    ///
    /// - Returns: its mapping, which is writable, and the file to pass to another process.
    /// - Throws: EINVAL before Linux 5.1; ENOSPC or ENOMEM when there is not enough memory; EFBIG when this process's
    ///   limit for files (RLIMIT_FSIZE) is lower; EMFILE.
    package static func make(size: Int) throws(SystemError) -> (memory: SharedMemory, file: SharedDescriptor) {
        // A system that has refused it is not asked again.
        try sysCheckFileSize(size)
        return try Refusals.memory.remember { () throws(SystemError) in
            let file = try makeFile()
            _ = try retrying(.ftruncate) { ftruncate(file.rawValue, size) }
            _ = try retrying(.fallocate) { shim_allocate(file.rawValue, size) }
            let memory = try SharedMemory(mapping: file.rawValue, size: size, isWritable: true)
            _ = try retrying(.fcntl) { shim_seal(file.rawValue) }
            return (memory, file)
        }
    }

    /// A memory file that cannot be made executable, as `vm.memfd_noexec=2` requires; an older kernel makes it without
    /// that flag.
    private static func makeFile() throws(SystemError) -> SharedDescriptor {
        let file = try Refusals.sealedMemory.avoid { () throws(SystemError) in
            try retrying(.memfd_create) { shim_memory_file(true) }
        } otherwise: { () throws(SystemError) in
            try retrying(.memfd_create) { shim_memory_file(false) }
        }
        return SharedDescriptor(owning: file)
    }

    /// Maps a file that another process has sent, for reading.
    ///
    /// - Returns: nil when it is not sealed memory of exactly that size.
    /// - Throws: ENOSPC or ENOMEM when pages are missing and cannot be allocated.
    package static func map(_ file: SharedDescriptor, size: Int) throws(SystemError) -> SharedMemory? {
        guard try isSealed(file.rawValue) else { return nil }
        // Once sealed, neither its size nor its allocated pages change.
        var status = stat()
        _ = try retrying(.fstat) { unsafe fstat(file.rawValue, &status) }
        guard status.st_size == size else { return nil }
        // Pages that its maker has left out are allocated now; an access that allocates one later might fail.
        _ = try retrying(.fallocate) { shim_allocate(file.rawValue, size) }
        return try SharedMemory(mapping: file.rawValue, size: size, isWritable: false)
    }

    private static func isSealed(_ descriptor: CInt) throws(SystemError) -> Bool {
        var sealed: CInt = 0
        // EINVAL: a file that has no seals.
        let result = try unless(EINVAL) { () throws(SystemError) in
            try retrying(.fcntl) { unsafe shim_is_sealed(descriptor, &sealed) }
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
        // SAFETY: the mapping has at least that many bytes, and lives until they are copied.
        return unsafe [UInt8](UnsafeRawBufferPointer(start: memory.base, count: size))
    }
}
