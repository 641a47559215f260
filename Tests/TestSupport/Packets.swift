// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
package import PortSystem

/// Sends one packet made of two parts; the descriptors remain the caller's.
package func sysSendPacket(
    _ socket: CInt, head: [UInt8], body: ArraySlice<UInt8>, descriptors: [SharedDescriptor]
) throws(SystemError) -> SendOutcome {
    defer { withExtendedLifetime(descriptors) {} }
    return try (head + body).withUnsafeBufferPointer { (bytes) throws(SystemError) in
        try sysSendPacket(
            socket, head: UnsafeRawBufferPointer(bytes), body: UnsafeRawBufferPointer(start: nil, count: 0),
            descriptors: descriptors.map(\.rawValue))
    }
}

/// Receives one packet into `buffer`.
package func sysReceivePacket(
    _ socket: CInt, into buffer: UnsafeMutableRawBufferPointer
) throws(SystemError) -> ReceiveOutcome {
    try sysReceivePacket(socket, head: buffer, body: UnsafeMutableRawBufferPointer(start: nil, count: 0))
}

/// Receives one packet of at most `limit` bytes.
///
/// - Returns: the outcome, and a packet's bytes.
package func sysReceivePacket(_ socket: CInt, limit: Int) throws(SystemError) -> (ReceiveOutcome, [UInt8]) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 1)
    defer { buffer.deallocate() }
    let outcome = try sysReceivePacket(socket, into: buffer)
    switch outcome {
    case .packet(let count, _), .descriptorsLost(let count): return (outcome, Array(buffer.prefix(count)))
    case .truncated, .wouldBlock, .peerClosed: return (outcome, [])
    }
}

/// A socket that listens for connections of packets at a path.
package func packetListener(at path: String, backlog: CInt = 128) throws(SystemError) -> SharedDescriptor {
    let socket = try sysPacketSocket()
    try sysBind(socket.raw, path: path)
    try sysListen(socket.raw, backlog: backlog)
    return SharedDescriptor(socket)
}

/// The connection that is pending at a listener.
///
/// - Throws: EAGAIN when there is none.
package func pendingConnection(at listener: SharedDescriptor) throws(SystemError) -> SharedDescriptor {
    guard let connection = try sysAccept(listener.rawValue) else { throw SystemError(EAGAIN) }
    return SharedDescriptor(connection)
}
