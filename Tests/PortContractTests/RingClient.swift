// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Testing

/// A client of a port, with rings, that poses as one of another process.
struct RingClient {
    /// The port's end.
    let connection: SocketConnection
    let ring: RingPeer

    /// Connects, and switches the port to the ring.
    init(_ process: Int32, at port: MachPort) throws {
        let (near, far) = try sysPacketSocketPair()
        let identity = PeerIdentity(processID: process, userID: sysUserID(), groupID: sysGroupID())
        connection = try SocketConnection(near, port: port.localPort, peer: identity)
        try #require(port.localPort.sockets).add(connection, isLimited: true)
        ring = try RingPeer(RawPeer(far)) { port.localPort.receiveFromSockets() }
        try #require(connection.hasRings)
        try ring.peer.send(PacketHeader(kind: .pathChange))
    }

    func send(_ id: Int32, times: Int) throws {
        for _ in 0..<times { try ring.write(MachMessage(id: id)) }
    }

    /// Sends messages of one part, bytes.
    func send(_ ids: ClosedRange<Int32>, bytes: [UInt8] = [1]) throws {
        for id in ids { try ring.write(MachMessage(id: id, bytes: bytes)) }
    }
}
