// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// A client with rings that writes whatever a test wants into its memory. The mapping goes with the object.
final class RingPeer {
    let peer: RawPeer
    let file: SharedDescriptor
    let words: UnsafeMutablePointer<UInt64>
    /// Writes into the ring to the port.
    var writer: RecordWriter
    /// Reads from the ring back.
    var reader: RecordReader

    /// What the port's end said to the offer.
    let answer: PacketHeader?

    /// Connects to a port, which is served or waits to be looked at by `look`, and offers rings.
    convenience init(to port: MachPort, on bench: Bench, look: () -> Void = {}) throws {
        try self.init(RawPeer(to: port, on: bench), look: look)
    }

    /// Offers rings over a connection.
    init(_ peer: RawPeer, look: () -> Void = {}) throws {
        self.peer = peer
        let memory: SharedMemory
        (memory, file) = try SharedMemory.make(size: RecordRing.pairSize)
        let mapped = mmap(nil, RecordRing.pairSize, PROT_READ | PROT_WRITE, MAP_SHARED, file.rawValue, 0)
        words = try #require(mapped).assumingMemoryBound(to: UInt64.self)
        writer = RecordWriter(RecordRing(memory, isSecond: false))
        reader = RecordReader(RecordRing(memory, isSecond: true), limit: PacketHeader.packetLimit)
        try peer.offer(file)
        look()
        answer = try peer.next()
    }

    deinit { munmap(words, RecordRing.pairSize) }

    /// How many bytes were written to the port, as it sees it.
    var tail: UInt64 {
        get { words[0] }
        set { words[0] = newValue }
    }

    /// How many bytes were read of the ring back, as the port sees it.
    var backHead: UInt64 {
        get { words[48 + 16] }
        set { words[48 + 16] = newValue }
    }

    /// Writes a message into the ring, and rings if the port sleeps.
    func write(_ message: MachMessage, asks: UInt64 = 0) throws {
        let encoded = try EncodedMessage(message)
        let header = PacketHeader(
            kind: .message, messageID: encoded.id, componentCount: UInt32(encoded.componentCount), asks: asks,
            totalLength: UInt64(encoded.payload.count))
        try write(header, encoded.payload)
    }

    func write(_ header: PacketHeader, _ payload: [UInt8] = []) throws {
        guard case .written(let mustRing) = writer.write(header.words, payload[...]) else { throw NothingCame() }
        if mustRing { try peer.send(PacketHeader(kind: .bell)) }
    }

    /// Whether the connection was refused as one that breaks the format.
    func isRefused() throws -> Bool {
        while let packet = try peer.next() {
            if packet.kind == .bell || packet.kind == .lane { continue }
            return packet.kind == .refused && packet.messageID == Int32(PortError.Code.malformedPacket.rawValue)
        }
        return false
    }
}

extension RawPeer {
    /// Offers a file as memory for rings.
    func offer(_ file: SharedDescriptor?, size: Int = RecordRing.pairSize) throws {
        let files = file.map { [$0] } ?? []
        try send(
            PacketHeader(kind: .ring, descriptorCount: UInt16(files.count), totalLength: UInt64(size)), [], files)
    }
}
