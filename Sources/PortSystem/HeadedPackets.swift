// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Packets that begin with a head of 40 bytes, which is a value here, never memory.

/// Sends one packet that begins with a head; its descriptors stay the caller's.
///
/// - Throws: as the other `sysSendPacket`.
package func sysSendPacket(
    _ socket: CInt, head: PacketWords, body: ArraySlice<UInt8>, descriptors: [SharedDescriptor]
) throws(SystemError) -> SendOutcome {
    let numbers = descriptors.map(\.rawValue)
    // SAFETY: both pointers live as long as the closures run. The descriptors live until the call is over.
    defer { withExtendedLifetime(descriptors) {} }
    return try unsafe withUnsafeBytes(of: head) { (head) throws(SystemError) in
        try unsafe body.withUnsafeBufferPointer { (body) throws(SystemError) in
            try unsafe sysSendPacket(
                socket, head: head, body: UnsafeRawBufferPointer(body), descriptors: numbers)
        }
    }
}

/// Receives one packet of at most `limit` bytes.
///
/// - Parameters:
///   - socket: the socket.
///   - limit: the size of the largest packet.
///   - giver: who sent it, as its descriptors are to know; made when there are any.
/// - Returns: what came, a packet's head, nil when it is shorter, and its other bytes.
/// - Throws: ENOBUFS or ENOMEM when the kernel has no memory.
package func sysReceiveHeadedPacket(
    _ socket: CInt, limit: Int, from giver: @autoclosure () -> (any DescriptorGiver)? = nil
) throws(SystemError) -> (ReceiveOutcome, head: PacketWords?, payload: [UInt8]) {
    let size = MemoryLayout<PacketWords>.size
    return try unsafe ReceiveRoom.withBytes(limit - size) { (body) throws(SystemError) in
        let (outcome, head, count) = try unsafe receive(socket, into: body, from: giver())
        return unsafe (outcome, head, Array(body.prefix(count)))
    }
}

/// Receives one packet, as above, whose bytes behind the head are written where there is room for them.
///
/// - Returns: what came: `truncated` when there was less room; and a packet's head, nil when it is shorter.
package func sysReceiveHeadedPacket(
    _ socket: CInt, into room: inout OutputSpan<UInt8>, from giver: @autoclosure () -> (any DescriptorGiver)? = nil
) throws(SystemError) -> (ReceiveOutcome, head: PacketWords?) {
    try unsafe room.withUnsafeMutableBufferPointer { (buffer, initializedCount) throws(SystemError) in
        let free = unsafe UnsafeMutableRawBufferPointer(
            rebasing: UnsafeMutableRawBufferPointer(buffer)[initializedCount...])
        let (outcome, head, count) = try unsafe receive(socket, into: free, from: giver())
        initializedCount += count
        return (outcome, head)
    }
}

/// - Returns: what came, a packet's head, and how many bytes are behind it.
private func receive(
    _ socket: CInt, into body: UnsafeMutableRawBufferPointer, from giver: @autoclosure () -> (any DescriptorGiver)?
) throws(SystemError) -> (ReceiveOutcome, PacketWords?, count: Int) {
    var head: PacketWords = (0, 0, 0, 0, 0)
    let outcome = try unsafe withUnsafeMutableBytes(of: &head) { (head) throws(SystemError) in
        try unsafe sysReceivePacket(socket, head: head, body: body, from: giver())
    }
    let headSize = MemoryLayout<PacketWords>.size
    switch outcome {
    case .packet(let count, _) where count >= headSize, .descriptorsLost(let count) where count >= headSize:
        return (outcome, head, count - headSize)
    case .packet, .descriptorsLost, .truncated, .wouldBlock, .reset, .peerClosed: return (outcome, nil, 0)
    }
}
