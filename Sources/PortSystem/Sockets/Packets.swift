// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Packets of SOCK_SEQPACKET sockets. One arrives whole or not at all.

import CPortShims
import PortCLibrary

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
    /// The peer is gone and everything it sent has been read.
    case peerClosed
}

/// The most descriptors that one packet carries: `SCM_MAX_FD` of the kernel.
package var packetDescriptorLimit: Int { Int(SHIM_SCM_MAX_FD) }

// MARK: - Sending

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

/// Sends one packet that begins with a head of 40 bytes, which is a value here, never memory. Its descriptors remain
/// the caller's.
///
/// - Parameters:
///   - socket: the socket.
///   - head: the head.
///   - firstWord: the payload's first eight bytes, as a number with the byte order in memory that they have in the
///     packet; nil when all of the payload is in the two arrays.
///   - body: what follows.
///   - tail: the end of the payload.
///   - descriptors: the descriptors to send with the packet.
/// - Returns: what became of it.
/// - Throws: as the other `sysSendPacket`.
package func sysSendPacket(
    _ socket: CInt, head: PacketWords, firstWord: UInt64? = nil, body: ArraySlice<UInt8> = [],
    tail: ArraySlice<UInt8> = [], descriptors: [SharedDescriptor] = []
) throws(SystemError) -> SendOutcome {
    let numbers = descriptors.isEmpty ? [] : descriptors.map(\.rawValue)
    // SAFETY: all pointers live as long as the closures run. The descriptors live until the call is over.
    defer { withExtendedLifetime(descriptors) {} }
    return try unsafe withUnsafeBytes(of: (head, firstWord ?? 0)) { (prefix) throws(SystemError) in
        try unsafe body.withUnsafeBufferPointer { (body) throws(SystemError) in
            try unsafe tail.withUnsafeBufferPointer { (tail) throws(SystemError) in
                try unsafe sysSendPacket(
                    socket, head: UnsafeRawBufferPointer(start: prefix.baseAddress, count: firstWord == nil ? 40 : 48),
                    body: UnsafeRawBufferPointer(body), tail: UnsafeRawBufferPointer(tail), descriptors: numbers)
            }
        }
    }
}

// MARK: - Receiving

/// Receives one packet: its beginning into `head`, and the rest into `body`. The observer for its descriptors is made
/// when there are any.
///
/// - Throws: ENOBUFS or ENOMEM when the kernel has no memory.
package func sysReceivePacket(
    _ socket: CInt, head: UnsafeMutableRawBufferPointer, body: UnsafeMutableRawBufferPointer,
    from closeObserver: @autoclosure () -> (any CloseObserver)? = nil
) throws(SystemError) -> ReceiveOutcome {
    var raw: [CInt] = []
    var flags: CInt = 0
    let capacity = transferCount(.recvmsg, head.count + body.count)
    do throws(SystemError) {
        let count = try unlessBlocked { () throws(SystemError) in
            try repeatingAfterReset { () throws(SystemError) in
                try retrying(.recvmsg) { unsafe receive(socket, head, body, atMost: capacity, &raw, &flags) }
            }
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
        if error.code == ECONNRESET || error.code == ENOTCONN { return .peerClosed }
        throw error
    }
}

/// Makes a call that reads from a socket, and repeats it once after a reset. A peer that closes while packets of ours
/// are unread in its queue resets the connection; packets of its own may follow. Linux reports that once, gVisor each
/// time.
@inline(__always)
private func repeatingAfterReset<Result>(_ call: () throws(SystemError) -> Result) throws(SystemError) -> Result {
    do throws(SystemError) {
        return try call()
    } catch {
        if error.code != ECONNRESET { throw error }
        return try call()
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

/// Receives one packet of at most `limit` bytes that begins with a head.
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
    return try unsafe ReceiveBuffer.withBytes(limit - size) { (body) throws(SystemError) in
        let (outcome, head, count) = try unsafe receiveHeaded(socket, into: body, from: closeObserver())
        // SAFETY: the kernel counts what it has copied, which is at most what `body` has room for.
        return unsafe (outcome, head, Array(UnsafeRawBufferPointer(start: body.baseAddress, count: count)))
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
        let (outcome, head, count) = try unsafe receiveHeaded(socket, into: free, from: closeObserver())
        initializedCount += count
        return (outcome, head)
    }
}

/// - Returns: the outcome, a packet's head, and the number of bytes after it.
private func receiveHeaded(
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
    case .packet, .descriptorsLost, .truncated, .wouldBlock, .peerClosed: return (outcome, nil, 0)
    }
}

/// The buffer in which a thread receives packets whose size it does not know: one for each thread that receives such
/// packets. Only as many of its pages are touched as the largest packet had.
@safe final class ReceiveBuffer {
    /// The size of the largest packet that is received here.
    static let size = 65_536
    private static let buffers = ThreadLocal<ReceiveBuffer>()

    private let memory: UnsafeMutableRawBufferPointer

    private init() {
        unsafe memory = .allocate(byteCount: Self.size, alignment: 1)
        Self.buffers.value = self
    }

    deinit {
        unsafe memory.deallocate()
    }

    /// Calls `body` with a buffer of at most `count` bytes, which belongs to the calling thread while `body` runs.
    static func withBytes<Result>(
        _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        let buffer = buffers.value ?? ReceiveBuffer()
        // SAFETY: the thread owns its buffer until it ends.
        return try unsafe body(UnsafeMutableRawBufferPointer(start: buffer.memory.baseAddress, count: min(count, size)))
    }
}

// MARK: - Peeking

/// The beginning of the next packet.
package enum PeekOutcome: Sendable {
    /// Its first eight bytes as one number, the first byte the lowest; bytes that it does not have are zero.
    case packet(UInt64)
    /// No packet now.
    case wouldBlock
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
            try repeatingAfterReset { () throws(SystemError) in
                try retrying(.recvmsg) { unsafe shim_peek(socket, &bytes, 8) }
            }
        }
        guard let count else { return .wouldBlock }
        // A packet may have no bytes; the connection has ended only when the kernel reports that.
        if count == 0, try hasEnded(socket) { return .peerClosed }
        return .packet(UInt64(littleEndian: bytes))
    } catch {
        if error.code == ECONNRESET || error.code == ENOTCONN { return .peerClosed }
        throw error
    }
}
