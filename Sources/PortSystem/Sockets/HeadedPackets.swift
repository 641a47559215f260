// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Packets that begin with a head of 40 bytes. The head is a value here, never memory.

/// Sends one packet that consists of a head only.
///
/// - Throws: as the other `sysSendPacket`.
package func sysSendPacket(_ socket: CInt, head: PacketWords) throws(SystemError) -> SendOutcome {
    // SAFETY: the pointer lives as long as the closure runs.
    try unsafe withUnsafeBytes(of: head) { (head) throws(SystemError) in
        try unsafe sysSendPacket(
            socket, head: head, body: UnsafeRawBufferPointer(start: nil, count: 0), descriptors: [])
    }
}

/// Sends one packet that begins with a head; its descriptors remain the caller's.
///
/// - Parameters:
///   - socket: the socket.
///   - head: the head.
///   - lead: the payload's first eight bytes, as a number with the byte order in memory that they have in the packet;
///     nil when all of the payload is in the two arrays.
///   - body: what follows.
///   - tail: the end of the payload.
///   - descriptors: the descriptors to send with the packet.
/// - Returns: what became of it.
/// - Throws: as the other `sysSendPacket`.
package func sysSendPacket(
    _ socket: CInt, head: PacketWords, lead: UInt64? = nil, body: ArraySlice<UInt8>, tail: ArraySlice<UInt8> = [],
    descriptors: [SharedDescriptor]
) throws(SystemError) -> SendOutcome {
    let numbers = descriptors.isEmpty ? [] : descriptors.map(\.rawValue)
    // SAFETY: all pointers live as long as the closures run. The descriptors live until the call is over.
    defer { withExtendedLifetime(descriptors) {} }
    return try unsafe withUnsafeBytes(of: (head, lead ?? 0)) { (prefix) throws(SystemError) in
        try unsafe body.withUnsafeBufferPointer { (body) throws(SystemError) in
            try unsafe tail.withUnsafeBufferPointer { (tail) throws(SystemError) in
                try unsafe sysSendPacket(
                    socket, head: UnsafeRawBufferPointer(start: prefix.baseAddress, count: lead == nil ? 40 : 48),
                    body: UnsafeRawBufferPointer(body), tail: UnsafeRawBufferPointer(tail), descriptors: numbers)
            }
        }
    }
}

/// Receives one packet of at most `limit` bytes.
///
/// - Parameters:
///   - socket: the socket.
///   - limit: the size of the largest packet.
///   - closeObserver: the observer for the packet's descriptors; made when there are any.
/// - Returns: the outcome, a packet's head, nil when it is shorter, and its other bytes.
/// - Throws: ENOBUFS or ENOMEM when the kernel has no memory.
package func sysReceiveHeadedPacket(
    _ socket: CInt, limit: Int, from closeObserver: @autoclosure () -> (any CloseObserver)? = nil
) throws(SystemError) -> (ReceiveOutcome, head: PacketWords?, payload: [UInt8]) {
    let size = MemoryLayout<PacketWords>.size
    return try unsafe ReceiveRoom.withBytes(limit - size) { (body) throws(SystemError) in
        let (outcome, head, count) = try unsafe receive(socket, into: body, from: closeObserver())
        return unsafe (outcome, head, Array(body.prefix(count)))
    }
}

/// Receives one packet, as above, and writes the bytes after its head to `room`.
///
/// - Returns: the outcome, `truncated` when there was not enough room; and a packet's head, nil when it is shorter.
package func sysReceiveHeadedPacket(
    _ socket: CInt, into room: inout OutputSpan<UInt8>,
    from closeObserver: @autoclosure () -> (any CloseObserver)? = nil
) throws(SystemError) -> (ReceiveOutcome, head: PacketWords?) {
    try unsafe room.withUnsafeMutableBufferPointer { (buffer, initializedCount) throws(SystemError) in
        let free = unsafe UnsafeMutableRawBufferPointer(
            rebasing: UnsafeMutableRawBufferPointer(buffer)[initializedCount...])
        let (outcome, head, count) = try unsafe receive(socket, into: free, from: closeObserver())
        initializedCount += count
        return (outcome, head)
    }
}

/// - Returns: the outcome, a packet's head, and the number of bytes after it.
private func receive(
    _ socket: CInt, into body: UnsafeMutableRawBufferPointer,
    from closeObserver: @autoclosure () -> (any CloseObserver)?
) throws(SystemError) -> (ReceiveOutcome, PacketWords?, count: Int) {
    var head: PacketWords = (0, 0, 0, 0, 0)
    let outcome = try unsafe withUnsafeMutableBytes(of: &head) { (head) throws(SystemError) in
        try unsafe sysReceivePacket(socket, head: head, body: body, from: closeObserver())
    }
    let headSize = MemoryLayout<PacketWords>.size
    switch outcome {
    case .packet(let count, _) where count >= headSize, .descriptorsLost(let count) where count >= headSize:
        return (outcome, head, count - headSize)
    case .packet, .descriptorsLost, .truncated, .wouldBlock, .reset, .peerClosed: return (outcome, nil, 0)
    }
}
