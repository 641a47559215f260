// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// SOCK_SEQPACKET Unix sockets: connected, ordered, with packet boundaries, descriptors and the peer's identity. All are
// created non-blocking and close-on-exec. A packet arrives whole or not at all.

import CPortShims
package import PortCLibrary

/// The outcome of sending a packet.
package enum SendOutcome: Hashable, Sendable {
    /// The kernel has accepted the whole packet.
    case sent
    /// The peer's queue is full.
    case wouldBlock
    /// The peer is gone.
    case peerClosed
}

/// The outcome of reading a socket's queue.
package enum ReceiveOutcome: Sendable {
    /// A packet: its bytes are in the buffer, and its descriptors belong to the receiver.
    case packet(byteCount: Int, descriptors: [SharedDescriptor])
    /// A packet larger than the buffer: it is lost, its descriptors are closed.
    case truncated
    /// A packet some of whose descriptors could not be opened here: its bytes are in the buffer, its descriptors are
    /// closed.
    case descriptorsLost(byteCount: Int)
    /// No packet now.
    case wouldBlock
    /// The peer has closed while it had unread packets of ours in its queue; packets of its own may still follow.
    case reset
    /// The peer is gone and everything it sent has been read.
    case peerClosed
}

/// The most descriptors that one packet carries: `SCM_MAX_FD` of the kernel.
package var packetDescriptorLimit: Int { Int(SHIM_SCM_MAX_FD) }

/// An unconnected socket.
package func sysPacketSocket() throws(SystemError) -> FileDescriptor {
    let type = SHIM_SOCK_SEQPACKET | SHIM_SOCK_CLOEXEC | SHIM_SOCK_NONBLOCK
    return FileDescriptor(owning: try retrying(.socket) { socket(AF_UNIX, type, 0) })
}

/// Two sockets connected to each other.
package func sysPacketSocketPair() throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
    let type = SHIM_SOCK_SEQPACKET | SHIM_SOCK_CLOEXEC | SHIM_SOCK_NONBLOCK
    var ends: [CInt] = [-1, -1]
    _ = try retrying(.socketpair) { unsafe socketpair(AF_UNIX, type, 0, &ends) }
    return (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
}

/// Two connected, non-blocking stream sockets, which the caller closes.
func sysStreamSocketPair() throws(SystemError) -> (CInt, CInt) {
    let type = SHIM_SOCK_STREAM | SHIM_SOCK_CLOEXEC | SHIM_SOCK_NONBLOCK
    var ends: [CInt] = [-1, -1]
    _ = try retrying(.socketpair) { unsafe socketpair(AF_UNIX, type, 0, &ends) }
    return (ends[0], ends[1])
}

/// Gives a socket a path in the file system.
package func sysBind(_ socket: CInt, path: String) throws(SystemError) {
    _ = try unsafe withSocketAddress(path) { (address, length) throws(SystemError) in
        try retrying(.bind) { unsafe bind(socket, address, length) }
    }
}

/// Accepts connections from now on.
package func sysListen(_ socket: CInt, backlog: CInt) throws(SystemError) {
    _ = try retrying(.listen) { listen(socket, backlog) }
}

/// Connects to a listening socket.
///
/// - Parameters:
///   - socket: the socket, non-blocking, as it is afterwards.
///   - path: the path of the listening socket.
///   - deadline: how long to wait while the listener's backlog is full.
/// - Returns: false when the listener's backlog is still full at the deadline.
/// - Throws: ECONNREFUSED when no socket listens, ENOENT when there is no such path, EPROTOTYPE for a socket of another
///   type.
package func sysConnect(_ socket: CInt, path: String, until deadline: MonotonicInstant) throws(SystemError) -> Bool {
    if try sysConnect(socket, path: path) { return true }
    defer { shim_set_send_timeout(socket, 0) }
    while deadline > .now {
        // A call that was interrupted is repeated, with the time that is left, not with that of the first call.
        if try sysConnect(socket, path: path, after: { setSendTimeout(socket, until: deadline) }) { return true }
    }
    return false
}

/// As above, without waiting.
package func sysConnect(_ socket: CInt, path: String) throws(SystemError) -> Bool {
    try sysConnect(socket, path: path, after: { true })
}

private func sysConnect(_ socket: CInt, path: String, after prepare: () -> Bool) throws(SystemError) -> Bool {
    let result = try unsafe withSocketAddress(path) { (address, length) throws(SystemError) in
        try unlessBlocked { () throws(SystemError) in
            try retrying(.connect) { unsafe prepare() ? connect(socket, address, length) : -1 }
        }
    }
    return result != nil
}

/// Limits how long a socket's calls wait for room; once the deadline is past they do not wait.
///
/// - Returns: false when the kernel refuses, with the reason in `errno`.
private func setSendTimeout(_ socket: CInt, until deadline: MonotonicInstant) -> Bool {
    let time = MonotonicInstant.now.duration(to: deadline).nanoseconds
    // The kernel counts in ticks; the call is repeated at least once a minute.
    return shim_set_send_timeout(socket, time <= 0 ? 0 : Int(min(time / 1000 + 1, 60_000_000))) == 0
}

/// Accepts one waiting connection.
///
/// - Returns: the connection, or nil when none waits.
/// - Throws: EMFILE and ENFILE when there is no descriptor for it: the connection remains in the backlog.
package func sysAccept(_ listener: CInt) throws(SystemError) -> FileDescriptor? {
    while true {
        do throws(SystemError) {
            let result = try unlessBlocked { () throws(SystemError) in try retrying(.accept) { shim_accept(listener) } }
            guard let result else { return nil }
            return FileDescriptor(owning: result)
        } catch {
            if error.code != ECONNABORTED { throw error }
        }
    }
}

/// Sends one packet made of up to three parts, with descriptors; those remain the caller's.
///
/// - Throws: EMSGSIZE when the packet is larger than the socket's buffer, ETOOMANYREFS when too many descriptors are in
///   flight, ENOBUFS or ENOMEM when the kernel has no memory.
package func sysSendPacket(
    _ socket: CInt, head: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer,
    tail: UnsafeRawBufferPointer = unsafe UnsafeRawBufferPointer(start: nil, count: 0), descriptors: [CInt]
) throws(SystemError) -> SendOutcome {
    do throws(SystemError) {
        let count = try unlessBlocked { () throws(SystemError) in
            try retrying(.sendmsg) {
                unsafe shim_send(
                    socket, head.baseAddress, head.count, body.baseAddress, body.count, tail.baseAddress, tail.count,
                    descriptors, CInt(descriptors.count))
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

/// Receives one packet into `buffer`. The observer for its descriptors is made when there are any.
///
/// - Throws: ENOBUFS or ENOMEM when the kernel has no memory.
package func sysReceivePacket(
    _ socket: CInt, into buffer: UnsafeMutableRawBufferPointer,
    from closeObserver: @autoclosure () -> (any CloseObserver)? = nil
) throws(SystemError) -> ReceiveOutcome {
    try unsafe sysReceivePacket(
        socket, head: buffer, body: UnsafeMutableRawBufferPointer(start: nil, count: 0), from: closeObserver())
}

/// Receives one packet, as above: its beginning into `head`, and the rest into `body`.
func sysReceivePacket(
    _ socket: CInt, head: UnsafeMutableRawBufferPointer, body: UnsafeMutableRawBufferPointer,
    from closeObserver: @autoclosure () -> (any CloseObserver)? = nil
) throws(SystemError) -> ReceiveOutcome {
    var raw: [CInt] = []
    var flags: CInt = 0
    let capacity = transferCount(.recvmsg, head.count + body.count)
    do throws(SystemError) {
        let count = try unlessBlocked { () throws(SystemError) in
            try retrying(.recvmsg) { unsafe receive(socket, head, body, atMost: capacity, &raw, &flags) }
        }
        let sender = raw.isEmpty ? nil : closeObserver()
        let descriptors = raw.map { SharedDescriptor(received: FileDescriptor(owning: $0), from: sender) }
        guard let count else { return .wouldBlock }
        if flags & SHIM_MSG_TRUNC != 0 { return .truncated }
        if flags & SHIM_MSG_CTRUNC != 0 { return .descriptorsLost(byteCount: count) }
        // A packet may have no bytes; the connection has ended only when the kernel reports that.
        if count == 0, descriptors.isEmpty, try hasEnded(socket) { return .peerClosed }
        return .packet(byteCount: count, descriptors: descriptors)
    } catch {
        if error.code == ECONNRESET { return .reset }
        if error.code == ENOTCONN { return .peerClosed }
        throw error
    }
}

/// Whether nothing more can arrive over a connection.
private func hasEnded(_ socket: CInt) throws(SystemError) -> Bool {
    try !sysPoll(socket, .peerClosed, until: .distantPast).isDisjoint(with: [.peerClosed, .hangUp, .error])
}

private func receive(
    _ socket: CInt, _ head: UnsafeMutableRawBufferPointer, _ body: UnsafeMutableRawBufferPointer, atMost capacity: Int,
    _ descriptors: inout [CInt], _ flags: inout CInt
) -> Int {
    unsafe withUnsafeTemporaryAllocation(of: CInt.self, capacity: packetDescriptorLimit) { (numbers) -> Int in
        var found: CInt = 0
        let headCapacity = min(head.count, capacity)
        let count = unsafe shim_receive(
            socket, head.baseAddress, headCapacity, body.baseAddress, capacity - headCapacity, numbers.baseAddress,
            CInt(numbers.count), &found, &flags)
        if found > 0 { unsafe descriptors = Array(numbers.prefix(Int(found))) }
        return count
    }
}

/// Ends a connection whose socket is about to be closed.
///
/// - Returns: whether it has unread packets, or that is unknown.
func sysEndHoldsPackets(_ socket: CInt) -> Bool { shim_shut_down_and_peek(socket) != 0 }

/// The process at the other end of a connected Unix socket, as the kernel recorded it when the connection was made.
package func sysPeerCredentials(_ socket: CInt) throws(SystemError) -> (process: pid_t, user: uid_t, group: gid_t) {
    var process: pid_t = 0
    var user: uid_t = 0
    var group: gid_t = 0
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

/// Calls `body` with the address of a socket at `path`.
private func withSocketAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemError) -> Result
) throws(SystemError) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw SystemError(ENAMETOOLONG) }
    unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
    return try unsafe withUnsafePointer(to: &address) { (pointer) throws(SystemError) -> Result in
        try unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            (generic) throws(SystemError) -> Result in
            try unsafe body(generic, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
}

/// The directions in which a connection can be shut down.
package enum Shutdown: Sendable {
    /// Both: the peer sees the end at once, even if other processes hold the descriptor.
    case both
    /// The peer can send no more; what we send still arrives.
    case receiving
}

/// Ends a connection in one or both directions.
package func sysShutDown(_ socket: CInt, _ direction: Shutdown = .both) {
    do throws(SystemError) {
        _ = try retrying(.shutdown) { shutdown(socket, CInt(direction == .both ? SHUT_RDWR : SHUT_RD)) }
    } catch {
        if error.code != ENOTCONN && !error.isRefusal {
            fatalError("shutdown of descriptor \(socket) failed: \(error). Was it closed by someone else?")
        }
    }
}

/// Sends one packet made of two parts, as above.
package func sysSendPacket(_ socket: CInt, head: [UInt8], body: ArraySlice<UInt8>, descriptors: [SharedDescriptor])
    throws(SystemError) -> SendOutcome
{
    let numbers = descriptors.map(\.rawValue)
    // SAFETY: both pointers live as long as the closures run. The descriptors live until the call is over.
    defer { withExtendedLifetime(descriptors) {} }
    return try unsafe head.withUnsafeBufferPointer { (head) throws(SystemError) in
        try unsafe body.withUnsafeBufferPointer { (body) throws(SystemError) in
            try unsafe sysSendPacket(
                socket, head: UnsafeRawBufferPointer(head), body: UnsafeRawBufferPointer(body), descriptors: numbers)
        }
    }
}

/// Receives one packet of at most `limit` bytes.
///
/// - Parameters:
///   - socket: the socket.
///   - limit: the size of the largest packet.
///   - closeObserver: the observer for the packet's descriptors; made when there are any.
/// - Returns: the outcome, and a packet's bytes.
/// - Throws: ENOBUFS or ENOMEM when the kernel has no memory.
package func sysReceivePacket(
    _ socket: CInt, limit: Int, from closeObserver: @autoclosure () -> (any CloseObserver)? = nil
) throws(SystemError) -> (ReceiveOutcome, [UInt8]) {
    try unsafe withUnsafeTemporaryAllocation(byteCount: limit, alignment: 16) { (buffer) throws(SystemError) in
        let outcome = try unsafe sysReceivePacket(socket, into: buffer, from: closeObserver())
        switch outcome {
        case .packet(let count, _), .descriptorsLost(let count): return unsafe (outcome, Array(buffer.prefix(count)))
        case .truncated, .wouldBlock, .reset, .peerClosed: return (outcome, [])
        }
    }
}

/// The beginning of the next packet.
package enum PeekOutcome: Sendable {
    /// Its first eight bytes as one number, the first byte the lowest; bytes that it does not have are zero.
    case packet(UInt64)
    /// No packet now.
    case wouldBlock
    /// As for a receive.
    case reset
    /// As for a receive.
    case peerClosed
}

/// Reads the beginning of the next packet, which stays in the queue.
///
/// - Throws: ENOBUFS or ENOMEM when the kernel has no memory.
package func sysPeekPacket(_ socket: CInt) throws(SystemError) -> PeekOutcome {
    var bytes: UInt64 = 0
    do throws(SystemError) {
        let count = try unlessBlocked { () throws(SystemError) in
            try retrying(.recvmsg) { unsafe withUnsafeMutableBytes(of: &bytes) { unsafe peek(socket, $0) } }
        }
        guard let count else { return .wouldBlock }
        // A packet may have no bytes; the connection has ended only when the kernel reports that.
        if count == 0, try hasEnded(socket) { return .peerClosed }
        return .packet(UInt64(littleEndian: bytes))
    } catch {
        if error.code == ECONNRESET { return .reset }
        if error.code == ENOTCONN { return .peerClosed }
        throw error
    }
}

private func peek(_ socket: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    unsafe shim_peek(socket, buffer.baseAddress, buffer.count)
}
