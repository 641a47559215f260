// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Where a loan is, as a message to another process has it: six numbers of 8 bytes.
struct LoanRecord: Hashable, Sendable {
    static let size = 48
    /// The most loans of a message: their records are in its first packet.
    static let limit = 256

    /// Which lender it is from: a number that nobody chooses twice. A port that moves has another one.
    var lender: UInt64
    /// The number of the loan at its lender, from 1.
    var number: UInt64
    /// The number of the segment in the lender's process.
    var segment: UInt64
    var segmentSize: Int
    var offset: Int
    var count: Int

    var bytes: [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.size)
        write(to: &bytes)
        return bytes
    }

    /// Writes it where there are as many bytes at least; with `last` as one number more.
    private func write(to bytes: inout [UInt8], last: UInt64? = nil) {
        var span = bytes.mutableSpan
        // SAFETY: the raw view of a span is unsafe for types with padding; bytes have none.
        var target = unsafe span.mutableBytes
        target.storeBytes(of: lender.littleEndian, toByteOffset: 0, as: UInt64.self)
        target.storeBytes(of: number.littleEndian, toByteOffset: 8, as: UInt64.self)
        target.storeBytes(of: segment.littleEndian, toByteOffset: 16, as: UInt64.self)
        target.storeBytes(of: UInt64(segmentSize).littleEndian, toByteOffset: 24, as: UInt64.self)
        target.storeBytes(of: UInt64(offset).littleEndian, toByteOffset: 32, as: UInt64.self)
        target.storeBytes(of: UInt64(count).littleEndian, toByteOffset: 40, as: UInt64.self)
        if let last { target.storeBytes(of: last.littleEndian, toByteOffset: Self.size, as: UInt64.self) }
    }

    init(lender: UInt64, number: UInt64, segment: UInt64, segmentSize: Int, offset: Int, count: Int) {
        (self.lender, self.number, self.segment) = (lender, number, segment)
        (self.segmentSize, self.offset, self.count) = (segmentSize, offset, count)
    }

    /// Reads a record; nil when it is none: of no number, or not within its segment.
    init?(_ body: ArraySlice<UInt8>) {
        guard body.count == Self.size else { return nil }
        let bytes = Array(body)
        self.init(
            bytes.littleEndian(at: 0), bytes.littleEndian(at: 8), bytes.littleEndian(at: 16),
            segmentSize: bytes.littleEndian(at: 24), offset: bytes.littleEndian(at: 32),
            count: bytes.littleEndian(at: 40))
    }

    /// The same of its six numbers.
    private init?(
        _ lender: UInt64, _ number: UInt64, _ segment: UInt64, segmentSize: UInt64, offset: UInt64, count: UInt64
    ) {
        (self.lender, self.number, self.segment) = (lender, number, segment)
        (self.segmentSize, self.offset, self.count) = (
            Int(clamping: segmentSize), Int(clamping: offset), Int(clamping: count)
        )
        guard number > 0, (1...MemoryPool.largestLoan).contains(self.segmentSize), self.offset <= self.segmentSize,
            self.count <= self.segmentSize - self.offset
        else { return nil }
    }
}

// A plain loan is a plain packet whose one part is lent memory, of a segment that the other side knows: the loan's record,
// and the head of the component, which has no bytes.

extension LoanRecord {
    /// The first head of a plain loan, in memory order.
    static let plainHead = ComponentKind.loan.head(size).littleEndian
    private static let plainSize = size + ComponentKind.headSize

    /// What follows that.
    var plainBody: [UInt8] {
        var bytes = BufferPool.take(Self.plainSize)
        write(to: &bytes, last: ComponentKind.lentMemory.head(0))
        return bytes
    }
}

extension RingConsumer {
    /// Reads the loan of the next packet, and adds the packet's beginning to `packets`, which is empty; the packet stays in
    /// the ring.
    ///
    /// - Returns: a copy, which was checked; nil when the packet is no plain loan.
    mutating func peekLoan(_ packets: inout [PacketPrefix]) -> LoanRecord? {
        guard let packet = peek(), packet.firstWord == LoanRecord.plainHead, packet.isOneWay, packet.hasPlainHead,
            let record = LoanRecord(inPlain: packet, of: self), record.count <= MessageLimits.payload
        else { return nil }
        packets.append(packet)
        return record
    }
}

extension LoanRecord {
    fileprivate init?(inPlain packet: PacketPrefix, of ring: RingConsumer) {
        guard packet.payloadSize == ComponentKind.headSize + Self.plainSize else { return nil }
        let body = ring.peekBody()
        guard body.6 == ComponentKind.lentMemory.head(0) else { return nil }
        self.init(body.0, body.1, body.2, segmentSize: body.3, offset: body.4, count: body.5)
    }
}
