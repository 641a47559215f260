// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Memory that two processes map, made of a file without a name (memfd_create(2)). Its size is sealed, so neither side
// can take it away under the other: an access never faults.

import CPortShims
import PortCLibrary

/// A mapping of shared memory, which goes with the object. What lies in it, the other process may change at any time.
@safe package final class SharedMemory: @unchecked Sendable {
    // Unchecked: the pointer never changes, and whoever uses what it leads to says how threads share that.
    let base: UnsafeMutableRawPointer  // immutable
    package let size: Int  // immutable

    private init(mapping descriptor: CInt, size: Int) throws(SystemError) {
        let address = try retrying(.mmap) { shim_map_shared(descriptor, size) }
        guard let base = unsafe UnsafeMutableRawPointer(bitPattern: address) else { throw SystemError(ENOMEM) }
        unsafe self.base = base
        self.size = size
    }

    deinit {
        unsafe munmap(base, size)
    }

    /// Makes memory, all zeros.
    ///
    /// - Returns: its mapping, and the file to give to another process.
    package static func make(size: Int) throws(SystemError) -> (memory: SharedMemory, file: SharedDescriptor) {
        let file = SharedDescriptor(owning: try retrying(.memfd_create) { shim_memory_file() })
        _ = try retrying(.ftruncate) { ftruncate(file.rawValue, size) }
        _ = try retrying(.fcntl) { shim_seal(file.rawValue) }
        return (try SharedMemory(mapping: file.rawValue, size: size), file)
    }

    /// Maps a file that another process gave.
    ///
    /// - Returns: nil when it is not sealed memory of exactly that size.
    package static func map(_ file: SharedDescriptor, size: Int) throws(SystemError) -> SharedMemory? {
        guard try isSealed(file.rawValue) else { return nil }
        // Its size is looked at after its seals: from then on it stays.
        var status = stat()
        _ = try retrying(.fstat) { unsafe fstat(file.rawValue, &status) }
        guard status.st_size == size else { return nil }
        return try SharedMemory(mapping: file.rawValue, size: size)
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
