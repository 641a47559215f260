// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RawRing
import TestSupport
import Testing

/// A client with rings, into whose memory a test writes anything it wants. The object owns the mapping.
final class RingPeer {
    let peer: RawPeer
    let words: RawRing
    /// Writes into the ring to the port.
    var producer: RingProducer
    /// Reads from the ring back.
    var consumer: RingConsumer

    /// The memory of the port's end.
    let portsMemory: SharedMemory?

    /// How the port's end answered the offer.
    let answer: PacketHeader?
    /// The wake channel that came with it.
    let waker: WakeSender?

    /// Connects to a port, which is served or waits to be polled by `poll`, and offers rings.
    convenience init(to port: MachPort, on bench: Bench, poll: () -> Void = {}) throws {
        try self.init(RawPeer(to: port, on: bench), poll: poll)
    }

    /// Offers rings over a connection.
    init(_ peer: RawPeer, poll: () -> Void = {}) throws {
        self.peer = peer
        words = try RawRing()
        try peer.offer(words.file)
        poll()
        let packet = try peer.nextPacket()
        answer = packet?.header
        waker = packet?.descriptors.dropFirst().first.flatMap { WakeSender($0) }
        portsMemory = try packet?.descriptors.first.flatMap { try SharedMemory.map($0, size: SharedRing.memorySize) }
        // A peer that was refused talks to its own memory only.
        let other = portsMemory ?? words.memory
        producer = RingProducer(SharedRing(from: words.memory, to: other))
        consumer = RingConsumer(SharedRing(from: other, to: words.memory), limit: PacketHeader.packetLimit)
    }

    /// How many bytes were written to the port, as it sees it.
    var tail: UInt64 {
        get { words.tail }
        set { words.tail = newValue }
    }

    /// How many bytes were read of the ring back, as the port sees it.
    var backHead: UInt64 {
        get { words.head }
        set { words.head = newValue }
    }

    /// Writes a message into the ring, and wakes the port if it sleeps.
    func write(_ message: MachMessage, asks: UInt64 = 0) throws {
        let encoded = try OutgoingMessage(message)
        let header = PacketHeader(
            kind: .message, messageID: encoded.id, componentCount: UInt32(encoded.componentCount), asks: asks,
            totalLength: UInt64(encoded.size))
        try write(header, encoded.bytes)
    }

    func write(_ header: PacketHeader, _ payload: [UInt8] = []) throws {
        guard case .written(let state) = producer.write(header.words, payload[...]) else { throw NothingCame() }
        if state == .awake { return }
        switch producer.beginWakeUp() {
        case .awake: break
        case .asleep: try peer.send(PacketHeader(kind: .wakeUp))
        case .parked: if waker?.wake() != true { try peer.send(PacketHeader(kind: .wakeUp)) }
        }
    }

    /// Whether the connection was refused as one that breaks the format.
    func isRefused() throws -> Bool {
        while let packet = try peer.next() {
            if packet.kind == .wakeUp || packet.kind == .pathChange { continue }
            return packet.kind == .refused && packet.messageID == Int32(PortError.Code.malformedPacket.rawValue)
        }
        return false
    }
}

extension RawPeer {
    /// Offers a file as memory for rings.
    func offer(_ file: SharedDescriptor?, size: Int = SharedRing.memorySize) throws {
        let files = file.map { [$0] } ?? []
        try send(
            PacketHeader(kind: .ring, descriptorCount: UInt16(files.count), totalLength: UInt64(size)), [], files)
    }
}
