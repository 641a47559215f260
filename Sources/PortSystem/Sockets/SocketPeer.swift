// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
package import PortCLibrary

/// The process at the other end of a connected Unix socket, as the kernel recorded it when the connection was made.
package func sysPeerCredentials(_ socket: CInt) throws(SystemError) -> (process: pid_t, user: uid_t, group: gid_t) {
    var (process, user, group): (pid_t, uid_t, gid_t) = (0, 0, 0)
    _ = try retrying(.getsockopt) { unsafe shim_peer_credentials(socket, &process, &user, &group) }
    return (process, user, group)
}

/// The supplementary groups of the process at the other end, as the kernel recorded them when the connection was made.
///
/// - Throws: `ENOPROTOOPT` on a kernel that does not report them (before Linux 4.13).
package func sysPeerGroups(_ socket: CInt) throws(SystemError) -> [gid_t] {
    var capacity: CInt = 32
    while true {
        var groups = [gid_t](repeating: 0, count: Int(capacity))
        var count: CInt = 0
        do throws(SystemError) {
            // ENOPROTOOPT is the error of a kernel that does not know the option.
            try Refusals.peerGroups.remember({ $0.isRefusal || $0.code == ENOPROTOOPT }) { () throws(SystemError) in
                _ = try retrying(.getsockopt) { unsafe shim_peer_groups(socket, &groups, capacity, &count) }
            }
            return Array(groups.prefix(Int(count)))
        } catch {
            guard error.code == ERANGE, count > capacity else { throw error }
            capacity = count
        }
    }
}

/// A descriptor of the process at the other end of a connected Unix socket (`pidfd`), even when its number was reused.
///
/// - Throws: `ENOPROTOOPT` before Linux 6.5, and the other errors that `Refusals.peerProcess` remembers; `ESRCH` when
///   the process has ended and was reaped, `EMFILE`.
package func sysPeerProcess(_ socket: CInt) throws(SystemError) -> FileDescriptor {
    let number = try Refusals.peerProcess.remember({ $0.code == ENOPROTOOPT || $0.isRefusal && $0.code != EINVAL }) {
        () throws(SystemError) in try retrying(.getsockopt) { shim_peer_process(socket) }
    }
    return FileDescriptor(owning: number)
}

/// The number that the kernel assigns to the process at the other end of a socket, and to no other process until the
/// machine reboots; nil on a kernel that assigns none (before Linux 6.9).
///
/// - Throws: as `sysPeerProcess`.
package func sysPeerProcessInode(_ socket: CInt) throws(SystemError) -> UInt64? {
    let process = try sysPeerProcess(socket)
    // On other kernels all such descriptors share one inode.
    guard try retrying(.fstat, { shim_is_of_process_files(process.raw) }) == 1 else { return nil }
    return UInt64(try sysStatus(process.raw).inode)
}
