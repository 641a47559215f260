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

/// Has the kernel say with each packet that comes which process has sent it, or no more.
package func sysPassCredentials(_ socket: CInt, _ isOn: Bool) throws(SystemError) {
    _ = try retrying(.setsockopt) { shim_pass_credentials(socket, isOn ? 1 : 0) }
}

/// The process that has sent the next packet on a socket: the kernel has checked what it says of itself, unless root
/// has sent it. The packet stays.
///
/// - Returns: nil when there is no packet, or the kernel does not say it.
package func sysPeekSender(_ socket: CInt) throws(SystemError) -> (process: pid_t, user: uid_t, group: gid_t)? {
    var (process, user, group): (pid_t, uid_t, gid_t) = (0, 0, 0)
    let isKnown = try unlessBlocked { () throws(SystemError) in
        try retrying(.recvmsg) { unsafe shim_peek_credentials(socket, &process, &user, &group) }
    }
    return isKnown == 1 ? (process, user, group) : nil
}

/// Sends a packet of a head alone, with which the receiver learns which process has sent it.
///
/// - Throws: as `sysSendPacket`.
package func sysSendCredentials(_ socket: CInt, head: PacketWords) throws(SystemError) -> SendOutcome {
    do throws(SystemError) {
        let count = try unlessBlocked { () throws(SystemError) in
            try unsafe withUnsafeBytes(of: head) { (head) throws(SystemError) in
                // SAFETY: the head lives as long as the closure runs.
                try retrying(.sendmsg) { unsafe shim_send_credentials(socket, head.baseAddress, head.count) }
            }
        }
        return count == nil ? .wouldBlock : .sent
    } catch {
        switch error.code {
        case EPIPE, ECONNRESET, ENOTCONN, ECONNREFUSED: return .peerClosed
        default: throw error
        }
    }
}

/// The supplementary groups of the process at the other end, as the kernel recorded them when the connection was made.
///
/// - Throws: `ENOPROTOOPT` on a kernel that does not report them (before Linux 4.13).
package func sysPeerGroups(_ socket: CInt) throws(SystemError) -> [gid_t] {
    Array(
        try readGrowing(from: 32) { (capacity, count) throws(SystemError) in
            var groups = [gid_t](repeating: 0, count: Int(capacity))
            // ENOPROTOOPT is the error of a kernel that does not know the option.
            try Refusals.peerGroups.remember({ $0.isRefusal || $0.code == ENOPROTOOPT }) { () throws(SystemError) in
                _ = try retrying(.getsockopt) { unsafe shim_peer_groups(socket, &groups, capacity, &count) }
            }
            return groups
        })
}

/// The label that a security module (SELinux, AppArmor, Smack) had for the process at the other end when the connection
/// was made, without the NUL that some end it with; nil when no module has one, or the system refuses the question.
package func sysPeerLabel(_ socket: CInt) throws(SystemError) -> String? {
    do throws(SystemError) {
        let bytes = try readGrowing(from: 256) { (capacity, count) throws(SystemError) in
            var label = [CChar](repeating: 0, count: Int(capacity))
            _ = try retrying(.getsockopt) { unsafe shim_peer_label(socket, &label, capacity, &count) }
            return label
        }
        let label = bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return label.isEmpty ? nil : String(decoding: label, as: UTF8.self)
    } catch {
        if error.code == ENOPROTOOPT || error.isRefusal { return nil }
        throw error
    }
}

/// Reads a list whose length is not known: again with as much room as the kernel has asked for, until it fits.
///
/// - Parameters:
///   - capacity: how many elements there is room for at first.
///   - read: reads at most that many, and sets how many there are; throws ERANGE when there are more.
/// - Returns: the list.
/// - Throws: what `read` throws; ERANGE too, when it asks for no more room.
func readGrowing<Element>(
    from capacity: CInt, _ read: (_ capacity: CInt, _ count: inout CInt) throws(SystemError) -> [Element]
) throws(SystemError) -> ArraySlice<Element> {
    var capacity = capacity
    while true {
        var count: CInt = 0
        do throws(SystemError) {
            return try read(capacity, &count).prefix(Int(count))
        } catch {
            guard error.code == ERANGE, count > capacity else { throw error }
            capacity = count
        }
    }
}

/// A descriptor of the process at the other end of a connected Unix socket (`pidfd`), even when its number was reused.
///
/// - Throws: `ESRCH` when the process has ended and was reaped: kernels before Linux 6.16 give no descriptor then, with
///   an error that depends on the kernel; later ones give one. `ENOPROTOOPT` before Linux 6.5, and the other errors
///   that `Refusals.peerProcess` remembers; `EMFILE`.
package func sysPeerProcess(_ socket: CInt) throws(SystemError) -> FileDescriptor {
    do throws(SystemError) {
        let number = try Refusals.peerProcess.remember({
            $0.code == ENOPROTOOPT || $0.isRefusal && ($0.code != EINVAL || isEachPeerInvalid())
        }) { () throws(SystemError) in try retrying(.getsockopt) { shim_peer_process(socket) } }
        return FileDescriptor(owning: number)
    } catch {
        let hasEnded = error.code == ENODATA || error.code == EINVAL && Refusals.peerProcess.error == nil
        throw hasEnded ? SystemError(ESRCH) : error
    }
}

/// Whether the system answers EINVAL for this process, too, which has not ended.
private func isEachPeerInvalid() -> Bool {
    do throws(SystemError) {
        let (end, other) = try sysPacketSocketPair()
        defer { withExtendedLifetime(other) {} }
        _ = FileDescriptor(owning: try retrying(.getsockopt) { shim_peer_process(end.rawValue) })
        return false
    } catch {
        return error.code == EINVAL
    }
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
