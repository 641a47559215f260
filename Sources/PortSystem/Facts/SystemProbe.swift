// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Facts about the system itself, for `portctl doctor`.

import CPortShims
import PortCLibrary

/// The release of the running kernel, as `uname -r` writes it.
package func sysKernelRelease() -> String {
    unsafe text { unsafe shim_kernel_release($0, $1) }
}

/// Name and version of the C library, as far as it reports them.
package func sysLibraryVersion() -> String {
    unsafe text { unsafe shim_library_version($0, $1) }
}

private func text(_ body: (UnsafeMutablePointer<CChar>?, CInt) -> Void) -> String {
    var bytes = [CChar](repeating: 0, count: 256)
    unsafe bytes.withUnsafeMutableBufferPointer { unsafe body($0.baseAddress, CInt($0.count)) }
    return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The limits `RLIMIT_NOFILE` of this process: the soft limit, and the hard limit to which it may be raised.
package func sysDescriptorLimits() -> (soft: UInt64, hard: UInt64) {
    var (soft, hard): (UInt64, UInt64) = (0, 0)
    unsafe shim_descriptor_limits(&soft, &hard)
    return (soft, hard)
}

/// Each makes a system call as the library does, once, regardless of remembered refusals, and leaves nothing behind.
package enum SystemProbe {
    /// epoll_pwait2(2).
    ///
    /// - Throws: ENOSYS before Linux 5.11.
    package static func preciseWait() throws(SystemError) {
        let set = try EpollSet()
        var record = shim_epoll_record()
        _ = try retrying(.epoll_wait) { unsafe shim_epoll_wait(set.raw, &record, 1, 0) }
    }

    /// memfd_create(2), with seals.
    ///
    /// - Parameter notExecutable: with `MFD_NOEXEC_SEAL`.
    /// - Throws: EINVAL before Linux 6.3, with that flag.
    package static func memory(notExecutable: Bool) throws(SystemError) {
        _ = FileDescriptor(owning: try retrying(.memfd_create) { unsafe shim_memory_file("port-probe", notExecutable) })
    }

    /// A memory file as rings need it: all its pages allocated (fallocate(2)), and sealed against new writers.
    ///
    /// - Throws: EINVAL before Linux 5.1, which has no such seal.
    package static func sealedMemory() throws(SystemError) {
        let file = FileDescriptor(owning: try retrying(.memfd_create) { unsafe shim_memory_file("port-probe", false) })
        _ = try retrying(.ftruncate) { ftruncate(file.raw, 4096) }
        _ = try retrying(.fallocate) { shim_allocate(file.raw, 0, 4096) }
        _ = try retrying(.fcntl) { shim_seal(file.raw, false) }
    }

    /// pidfd_open(2), of this process.
    ///
    /// - Throws: ENOSYS before Linux 5.3.
    package static func processDescriptor() throws(SystemError) -> FileDescriptor {
        FileDescriptor(owning: try retrying(.pidfd_open) { shim_pidfd_open(getpid()) })
    }

    /// pidfd_send_signal(2), with no signal.
    package static func processSignal() throws(SystemError) {
        let process = try processDescriptor()
        _ = try retrying(.pidfd_send_signal) { shim_pidfd_send_signal(process.raw, 0) }
    }

    /// waitid(2) with a process descriptor, for this process, which is not its own child.
    ///
    /// - Throws: EINVAL before Linux 5.4.
    package static func processWait() throws(SystemError) {
        let process = try processDescriptor()
        _ = try unless(ECHILD) { () throws(SystemError) in
            try sysWaitForChild(process.raw, 0, leavesUnreaped: true, blocks: false)
        }
    }

    /// fcntl(2) for open-file-description locks. Every file can be tested for one.
    package static func openFileLock() throws(SystemError) {
        try tryOpenFileLock()
    }

    /// renameat2(2) with `RENAME_NOREPLACE`, of a file that is not there.
    ///
    /// - Throws: ENOSYS before Linux 3.15.
    package static func exclusiveRename() throws(SystemError) {
        try tryExclusiveRename()
    }

    /// getsockopt(2) with SO_PEERGROUPS.
    ///
    /// - Throws: ENOPROTOOPT before Linux 4.13.
    package static func peerGroups() throws(SystemError) {
        let (end, other) = try sysPacketSocketPair()
        defer { withExtendedLifetime(other) {} }
        var (count, group) = (CInt(0), gid_t(0))
        _ = try unless(ERANGE) { () throws(SystemError) in
            try retrying(.getsockopt) { unsafe shim_peer_groups(end.rawValue, &group, 1, &count) }
        }
    }

    /// inotify_add_watch(2), for a directory that every user may read.
    package static func directoryWatch() throws(SystemError) {
        _ = try DirectoryWatch().add("/", .selfDeleted)
    }

    /// close_range(2), with a range that contains no descriptor.
    ///
    /// - Throws: ENOSYS before Linux 5.9.
    package static func closeRange() throws(SystemError) {
        _ = try retrying(.close_range) { shim_close_no_range() }
    }
}

/// The number in a file of /proc/sys.
///
/// - Parameter name: its name, as sysctl(8) writes it.
/// - Returns: nil when there is no such file, or no number in it.
package func sysNumber(named name: String) -> Int? {
    let path = "/proc/sys/" + name.split(separator: ".").joined(separator: "/")
    return sysReadText(path).flatMap { Int($0.prefix { $0 != "\n" }) }
}
