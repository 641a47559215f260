// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// One end of a connection, over which a test sends any packets it wants.
struct RawPeer: Sendable {
    let socket: SharedDescriptor

    /// Adopts a connected socket.
    init(_ socket: SharedDescriptor) {
        self.socket = socket
    }

    /// Connects to a port.
    init(to port: MachPort, on bench: Bench) throws {
        let made = try sysPacketSocket()
        let isConnected = try sysConnect(made.raw, path: port.localPort.address(in: bench.directory).path)
        #expect(isConnected)
        socket = SharedDescriptor(made)
    }

    /// Sends one packet.
    ///
    /// - Returns: whether the kernel accepted it.
    @discardableResult
    func send(_ bytes: [UInt8], _ descriptors: [SharedDescriptor] = []) throws -> Bool {
        // A foreign packet may have any length, so all of it is passed as the head.
        try sysSendPacket(socket.rawValue, head: bytes, body: [], descriptors: descriptors) == .sent
    }

    @discardableResult
    func send(_ header: PacketHeader, _ payload: [UInt8] = [], _ descriptors: [SharedDescriptor] = []) throws -> Bool {
        try send(header.encoded + payload, descriptors)
    }

    /// Sends a whole message of one packet.
    func send(_ message: MachMessage, asks: UInt64 = 0, answers: UInt64 = 0) throws {
        let encoded = try OutgoingMessage(message)
        try send(
            PacketHeader(
                kind: .message, descriptorCount: UInt16(encoded.descriptors.count), messageID: encoded.id,
                componentCount: UInt32(encoded.componentCount), asks: asks, answers: answers,
                totalLength: UInt64(encoded.size)), encoded.bytes, encoded.descriptors)
    }

    /// A token under which the port has asked over this connection, its only one, and no longer waits for an answer.
    func givenUpToken(at port: MachPort) throws -> UInt64 {
        try send(MachMessage(id: 0))
        _ = try port.next()
        let sockets = try #require(port.localPort.sockets)
        let connection = try #require(sockets.state.withLock { $0.members.values.first })
        return try connection.givenUpToken()
    }

    /// Waits for the next packet. Offers of rings, as `PORT_RING=always` makes with the first message, are skipped, and
    /// so never accepted. So are probes, which a slow machine may cause.
    ///
    /// - Returns: its head; nil at the end of the connection.
    func next() throws -> PacketHeader? { try nextPacket()?.header }

    /// As `next`, and the descriptors that came with it.
    func nextPacket(
        skipping skipped: Set<PacketKind> = [.ring, .probe]
    ) throws -> (header: PacketHeader, descriptors: [SharedDescriptor])? {
        while true {
            let seen = try sysPoll(socket.rawValue, .readable, until: Watchdog.deadline)
            if seen.isEmpty { throw NothingCame() }
            let (outcome, bytes) = try sysReceivePacket(socket.rawValue, limit: PacketHeader.packetLimit)
            switch outcome {
            case .packet(_, let descriptors):
                guard let header = PacketHeader(bytes) else { throw PortError(.malformedPacket) }
                if skipped.contains(header.kind) { continue }
                return (header, descriptors)
            case .peerClosed: return nil
            case .wouldBlock: continue
            case .truncated, .descriptorsLost: throw PortError(.malformedPacket)
            }
        }
    }

    /// Reads a whole message; skips notices before it.
    ///
    /// - Returns: the bytes of its payload.
    func readMessage() throws -> Int {
        var (total, count) = (Int.max, 0)
        while count < total {
            let seen = try sysPoll(socket.rawValue, .readable, until: Watchdog.deadline)
            if seen.isEmpty { throw NothingCame() }
            let (_, bytes) = try sysReceivePacket(socket.rawValue, limit: PacketHeader.packetLimit)
            let header = try #require(PacketHeader(bytes))
            if header.kind == .message { total = Int(header.totalLength) }
            count += bytes.count - PacketHeader.size
        }
        return count
    }
}

extension OutgoingMessage {
    /// All of the payload.
    var bytes: [UInt8] {
        var first: [UInt8] = []
        if let firstWord { first.append(littleEndian: UInt64(littleEndian: firstWord)) }
        return first + records + tail
    }
}

/// A socket that listens as a port's does; the test decides what it answers.
struct RawListener: Sendable {
    let socket: SharedDescriptor
    let address: PortAddress

    init(_ path: String, backlog: Int32 = 8) throws {
        socket = try packetListener(at: path, backlog: backlog)
        address = PortAddress(path: path)
    }

    func accept() throws -> RawPeer {
        _ = try sysPoll(socket.rawValue, .readable, until: Watchdog.deadline)
        guard let accepted = try sysAccept(socket.rawValue) else { throw NothingCame() }
        return RawPeer(SharedDescriptor(accepted))
    }
}

extension Bench {
    /// A listener whose one connection `serve` handles on a thread of its own: a right to it, and the thread.
    func rawListener(
        _ serve: @escaping @Sendable (RawPeer) throws -> Void
    ) throws -> (right: SendRight, thread: TestThread<Void>) {
        let listener = try RawListener(directory.path + "/raw")
        let right = SendRight(try #require(try RightsTable.connect(to: listener.address)))
        return (right, runOnThread { try serve(listener.accept()) })
    }

    /// A port, a raw peer of it, and that peer's request, which the port has received.
    func portWithRequest() throws -> (port: MachPort, peer: RawPeer, request: MachMessage) {
        let port = try port()
        let peer = try RawPeer(to: port, on: self)
        try peer.send(MachMessage(id: 1), asks: 1)
        return (port, peer, try port.next())
    }
}

extension SocketConnection {
    /// A token under which this end asked, as far as it knows, and no longer waits for an answer.
    func givenUpToken() throws -> UInt64 {
        let token = try expectReply(for: ReplyTarget(UnusedReceiver()))
        didSend(token: token)
        forget(token: token)
        return token
    }
}

/// Stands for a port or thread that awaits a reply.
final class UnusedReceiver: ReplyReceiver {
    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) {}
    func fail(_ error: PortError) {}
    func expectReply(over connection: any ReplyConnection) {}
}

/// The watchdog ended a wait for a peer.
struct NothingCame: Error {}
