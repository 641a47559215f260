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
        let peer: RawPeer
        (connection, peer) = try SocketConnection.posing(as: process, at: port)
        ring = try RingPeer(peer) { port.localPort.receiveFromSockets() }
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

extension SocketConnection {
    /// Connects to a port as if from another process: the port's end, and the client.
    static func posing(as process: Int32, at port: MachPort) throws -> (SocketConnection, RawPeer) {
        let (near, far) = try sysPacketSocketPair()
        let identity = PeerIdentity(processID: process, userID: sysUserID(), groupID: sysGroupID())
        let connection = try SocketConnection(near, port: port.localPort, peer: identity)
        try #require(port.localPort.sockets).add(connection, isAccepted: true)
        return (connection, RawPeer(far))
    }
}

extension MachPort {
    /// Receives until the message with this number, after at most twice the queue's limit of others, and then all that
    /// is left.
    ///
    /// - Returns: how many others there were.
    func countOthers(than late: Int32) throws -> Int {
        var count = 0
        while try next().id != late { count += 1 }
        #expect(count <= 2 * queueLimit)
        while try tryReceive() != nil { count += 1 }
        return count
    }

    /// Receives all messages, of a flood that dropped few of them before the first was received.
    ///
    /// - Returns: how many came, dropped ones included.
    func countFlood() throws -> Int {
        var received = 1
        _ = try next()
        #expect(droppedMessageCount <= 4_096)
        while try tryReceive() != nil { received += 1 }
        return droppedMessageCount + received
    }
}
