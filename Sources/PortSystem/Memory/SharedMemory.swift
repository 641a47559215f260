// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Memory that one process writes and another reads, made of a file without a name (memfd_create(2)). Its pages are there
// from the beginning. Its seals keep its size, and forbid to map it anew to write and to make holes in it: so nobody but its maker writes
// there, and an access never faults, whatever the system's rule for memory that is promised (vm.overcommit_memory).

import CPortShims
import PortCLibrary

/// A mapping of shared memory, which goes with the object. The maker may change what is in it at any time.
@safe package final class SharedMemory: @unchecked Sendable {
    // Unchecked: the pointer never changes, and whoever uses what it leads to says how threads share that.
    /// Where the memory begins. Only its maker may write there.
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
    /// - Returns: its mapping, which can be written, and the file to give to another process.
    /// - Throws: EINVAL before Linux 5.1; ENOSPC or ENOMEM when there is not so much memory; EFBIG when the limit of this process
    ///   for files (RLIMIT_FSIZE) is lower; EMFILE.
    package static func make(size: Int) throws(SystemError) -> (memory: SharedMemory, file: SharedDescriptor) {
        // A system that refuses it is not asked again.
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

    /// A file of memory that cannot be made executable, as `vm.memfd_noexec=2` wants it; an older kernel makes it without
    /// that.
    private static func makeFile() throws(SystemError) -> SharedDescriptor {
        let file = try Refusals.sealedMemory.avoid { () throws(SystemError) in
            try retrying(.memfd_create) { shim_memory_file(true) }
        } otherwise: { () throws(SystemError) in
            try retrying(.memfd_create) { shim_memory_file(false) }
        }
        return SharedDescriptor(owning: file)
    }

    /// Maps a file that another process gave, to read.
    ///
    /// - Returns: nil when it is not sealed memory of exactly that size.
    /// - Throws: ENOSPC or ENOMEM when pages are not there yet, and cannot be had.
    package static func map(_ file: SharedDescriptor, size: Int) throws(SystemError) -> SharedMemory? {
        guard try isSealed(file.rawValue) else { return nil }
        // After the seals, its size and the pages that are there stay.
        var status = stat()
        _ = try retrying(.fstat) { unsafe fstat(file.rawValue, &status) }
        guard status.st_size == size else { return nil }
        // Those that its maker has left out come now, not by an access that may fail then.
        _ = try retrying(.fallocate) { shim_allocate(file.rawValue, size) }
        return try SharedMemory(mapping: file.rawValue, size: size, isWritable: false)
    }

    private static func isSealed(_ descriptor: CInt) throws(SystemError) -> Bool {
        var sealed: CInt = 0
        do throws(SystemError) {
            _ = try retrying(.fcntl) { unsafe shim_is_sealed(descriptor, &sealed) }
        } catch {
            if error.code == EINVAL { return false }  // a file that has no seals
            throw error
        }
        return sealed != 0
    }
}
