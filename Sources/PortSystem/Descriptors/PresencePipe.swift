// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary
import Synchronization

/// A pipe to which nothing is written: the kernel counts its write ends, in whatever processes and messages they are,
/// and reports when the last one is closed.
package struct PresencePipe: Sendable {
    package let reading: SharedDescriptor
    package let writing: SharedDescriptor

    /// - Throws: EMFILE, ENFILE.
    package init() throws(SystemError) {
        let ends = try sysPipe()
        // What other processes have of it may make a close wait.
        reading = SharedDescriptor(FileDescriptor(owning: ends.reading), closing: .elsewhereAsPipe)
        writing = SharedDescriptor(FileDescriptor(owning: ends.writing), closing: .elsewhereAsPipe)
        // A pipe has as many pages of the user's allowance as it may need. Without this it has more.
        _ = try? retrying(.fcntl) { shim_shrink_pipe(ends.writing) }
    }

    /// Checks a descriptor that came with a right.
    ///
    /// - Returns: what is known of its pipe; nil for any other file, and for an end that the kernel does not count as one
    ///   that may write.
    package static func identity(ofWriteEnd end: SharedDescriptor) -> PipeIdentity? {
        withExtendedLifetime(end) {
            guard let mode = accessMode(of: end.rawValue), mode == O_WRONLY || mode == O_RDWR else { return nil }
            return PipeIdentity(end)
        }
    }

    /// Whether a descriptor is an end of a pipe that only reads: it reports the last write end's closing.
    ///
    /// - Returns: nil where the system does not say: what else is watched like a pipe may ask a file system.
    package static func isReadEnd(_ end: SharedDescriptor) -> Bool? {
        withExtendedLifetime(end) {
            guard accessMode(of: end.rawValue) == O_RDONLY, let pipe = PipeIdentity(end) else { return false }
            return pipe.isCertain ? true : nil
        }
    }

    /// Whether two descriptors are of the same open file, which all ends are that were sent on: so they are ends of one
    /// pipe. Where the kernel does not say, they are not known to be.
    package static func areSame(_ end: SharedDescriptor, _ other: SharedDescriptor) -> Bool {
        if end === other { return true }
        return withExtendedLifetime((end, other)) {
            if let answer = try? retrying(.fcntl, { shim_query_duplicate(end.rawValue, other.rawValue) }) {
                return answer == 1
            }
            return (try? sysAreSame(end.rawValue, other.rawValue)) == true
        }
    }

    private static func accessMode(of descriptor: CInt) -> CInt? {
        try? retrying(.fcntl) { shim_access_mode(descriptor) }
    }
}

/// What is known of the pipe of an end: pipes with different identities are different. The converse need not be so: the
/// kernel's numbers wrap around.
package struct PipeIdentity: Hashable, Sendable {
    /// Nil where the system does not say whether it is a pipe.
    private let inode: UInt64?

    /// Nothing is known.
    package static let unknown = PipeIdentity(inode: nil)

    private init(inode: UInt64?) { self.inode = inode }

    /// Whether it is a pipe for certain.
    package var isCertain: Bool { inode != nil }

    /// The number of the file system of all pipes; zero as long as it is not known.
    private static let device = Atomic<UInt64>(0)

    /// Nil when the descriptor is no end of a pipe. Asks no file system, which may be a peer's and never answer, and
    /// makes no call that locks the pipe, as F_GETPIPE_SZ does: a writer holds that lock while its memory is read, which
    /// may be a file of such a file system.
    fileprivate init?(_ end: SharedDescriptor) {
        let mayBePipe = try? sysMayBePipe(end.rawValue)
        if mayBePipe == false { return nil }
        guard mayBePipe == true, let facts = try? sysPipeFacts(end.rawValue) else {
            inode = nil
            return
        }
        guard facts.isPipe else { return nil }
        if Self.device.load(ordering: .relaxed) == 0 { Self.findDevice() }
        let device = Self.device.load(ordering: .relaxed)
        // A FIFO is in another file system.
        if device != 0, device != facts.device { return nil }
        inode = device == 0 ? nil : facts.inode
        if device != 0 { end.noteIsPipe() }
    }

    private static func findDevice() {
        guard let ends = try? sysPipe() else { return }
        if let facts = try? sysPipeFacts(ends.reading) { device.store(facts.device, ordering: .relaxed) }
        sysClose(ends.reading)
        sysClose(ends.writing)
    }
}

/// Whether a descriptor may be a pipe: it is no file or directory of a file system. Asks none.
///
/// - Throws: the reason when the system does not say.
package func sysMayBePipe(_ descriptor: CInt) throws(SystemError) -> Bool {
    try unless(ESPIPE) { () throws(SystemError) in
        try retrying(.sync_file_range) { shim_sync_nothing(descriptor) }
    } == nil
}

/// Whether a descriptor is a pipe, and of which number in which file system.
///
/// - Throws: the reason when the system does not say.
package func sysPipeFacts(_ descriptor: CInt) throws(SystemError) -> (isPipe: Bool, device: UInt64, inode: UInt64) {
    var (device, inode): (UInt64, UInt64) = (0, 0)
    let isPipe = try retrying(.statx) { unsafe shim_statx_pipe(descriptor, &device, &inode) }
    return (isPipe == 1, device, inode)
}

/// Whether two descriptors are of the same open file, by kcmp(2).
///
/// - Throws: the reason when the system does not say.
package func sysAreSame(_ descriptor: CInt, _ other: CInt) throws(SystemError) -> Bool {
    try retrying(.kcmp) { shim_compare_files(descriptor, other) } == 0
}
