// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport

/// Whether a number is an open descriptor of this process.
func isOpen(_ descriptor: CInt) -> Bool {
    fcntl(descriptor, F_GETFD) != -1
}

/// Whether a descriptor is closed when this process executes another program.
func isCloseOnExec(_ descriptor: CInt) -> Bool {
    let flags = fcntl(descriptor, F_GETFD)
    return flags != -1 && flags & FD_CLOEXEC != 0
}

/// Whether calls on a descriptor return at once.
func isNonBlocking(_ descriptor: CInt) -> Bool {
    let flags = fcntl(descriptor, F_GETFL)
    return flags != -1 && flags & O_NONBLOCK != 0
}

/// Sends one packet.
func send(_ socket: SharedDescriptor, _ head: [UInt8], _ body: [UInt8] = [], _ descriptors: [CInt] = []) throws
    -> SendOutcome
{
    try head.withUnsafeBytes { head in
        try body.withUnsafeBytes { body in
            try sysSendPacket(socket.rawValue, head: head, body: body, descriptors: descriptors)
        }
    }
}

/// The result of `receive`, in a form that can be compared.
enum Received: Hashable {
    case packet([UInt8], descriptorCount: Int)
    case truncated, descriptorsLost, wouldBlock, reset, peerClosed
}

/// Receives one packet; its descriptors are closed.
func receive(_ socket: SharedDescriptor, capacity: Int = 1024) throws -> Received {
    var buffer = [UInt8](repeating: 0xEE, count: capacity)
    let outcome = try buffer.withUnsafeMutableBytes { try sysReceivePacket(socket.rawValue, into: $0) }
    switch outcome {
    case .packet(let count, let descriptors):
        return .packet(Array(buffer.prefix(count)), descriptorCount: descriptors.count)
    case .truncated: return .truncated
    case .descriptorsLost: return .descriptorsLost
    case .wouldBlock: return .wouldBlock
    case .peerClosed: return .peerClosed
    }
}
