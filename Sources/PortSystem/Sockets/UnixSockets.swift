// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// SOCK_SEQPACKET Unix sockets: connected, ordered, with packet boundaries, descriptors and the peer's identity. All are
// created non-blocking and close-on-exec.

import CPortShims
import PortCLibrary

/// An unconnected socket.
package func sysPacketSocket() throws(SystemError) -> FileDescriptor {
    let type = SHIM_SOCK_SEQPACKET | SHIM_SOCK_CLOEXEC | SHIM_SOCK_NONBLOCK
    return FileDescriptor(owning: try retrying(.socket) { socket(AF_UNIX, type, 0) })
}

/// Two packet sockets connected to each other.
package func sysPacketSocketPair() throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
    try socketPair(SHIM_SOCK_SEQPACKET)
}

/// Two stream sockets connected to each other.
func sysStreamSocketPair() throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
    try socketPair(SHIM_SOCK_STREAM)
}

private func socketPair(_ type: CInt) throws(SystemError) -> (SharedDescriptor, SharedDescriptor) {
    var ends: [CInt] = [-1, -1]
    _ = try retrying(.socketpair) {
        unsafe socketpair(AF_UNIX, type | SHIM_SOCK_CLOEXEC | SHIM_SOCK_NONBLOCK, 0, &ends)
    }
    return (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
}

/// Whether an open descriptor is a packet socket (SOCK_SEQPACKET) of the Unix family.
///
/// - Throws: EBADF when it is not open, ENOTSOCK when it is no socket.
package func sysIsPacketSocket(_ descriptor: CInt) throws(SystemError) -> Bool {
    let (family, type) = (try option(SO_DOMAIN, of: descriptor), try option(SO_TYPE, of: descriptor))
    return family == AF_UNIX && type == SHIM_SOCK_SEQPACKET
}

private func option(_ name: CInt, of socket: CInt) throws(SystemError) -> CInt {
    var value: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    _ = try retrying(.getsockopt) { unsafe getsockopt(socket, SOL_SOCKET, name, &value, &length) }
    return value
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

/// Ends a connection: the peer sees the end at once, even if other processes hold the descriptor.
///
/// - Parameters:
///   - socket: the socket.
///   - receivingOnly: only keeps the peer from sending more: what we send still arrives.
package func sysShutDown(_ socket: CInt, receivingOnly: Bool = false) {
    do throws(SystemError) {
        _ = try retrying(.shutdown) { shutdown(socket, CInt(receivingOnly ? SHUT_RD : SHUT_RDWR)) }
    } catch {
        if error.code != ENOTCONN && !error.isRefusal {
            fatalError("shutdown of descriptor \(socket) failed: \(error). Did other code close it?")
        }
    }
}

/// Ends a connection whose socket is about to be closed.
///
/// - Returns: whether it has unread packets, or that is unknown.
func sysEndHoldsPackets(_ socket: CInt) -> Bool { shim_shut_down_and_peek(socket) != 0 }

// MARK: - Options

/// Whether a socket listens for connections.
///
/// - Throws: EBADF when it is not open, ENOTSOCK when it is no socket.
package func sysIsListening(_ descriptor: CInt) throws(SystemError) -> Bool {
    try option(SO_ACCEPTCONN, of: descriptor) != 0
}

/// The path of a Unix socket, as it was bound; nil for one without a path.
///
/// - Throws: EBADF when it is not open, ENOTSOCK when it is no socket.
package func sysSocketPath(_ descriptor: CInt) throws(SystemError) -> String? {
    var bytes = [CChar](repeating: 0, count: 256)
    var count: CInt = 0
    _ = try retrying(.getsockname) { unsafe shim_socket_path(descriptor, &bytes, CInt(bytes.count), &count) }
    if count == 0 { return nil }
    return String(validating: bytes.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Makes a listening socket, and the connections that it accepts, receive only bytes and descriptors. With each of
/// these options the kernel adds something to every packet: with `SO_PASSPIDFD`, a descriptor that the receiver did not
/// request.
package func sysReceivePlainly(_ descriptor: CInt) throws(SystemError) {
    for option in [SO_PASSCRED, SO_PASSSEC, passProcessDescriptor] {
        var off: CInt = 0
        do throws(SystemError) {
            _ = try retrying(.setsockopt) {
                unsafe setsockopt(descriptor, SOL_SOCKET, option, &off, socklen_t(MemoryLayout<CInt>.size))
            }
        } catch {
            // A kernel that does not know the option adds nothing.
            if error.code != ENOPROTOOPT && error.code != EOPNOTSUPP { throw error }
        }
    }
}

/// `SO_PASSPIDFD`, Linux 6.5, on the machines where Swift runs.
private let passProcessDescriptor: CInt = 76
