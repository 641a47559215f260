// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.size)
        for number in [lender, number, segment, UInt64(segmentSize), UInt64(offset), UInt64(count)] {
            bytes.append(littleEndian: number)
        }
        return bytes
    }

    init(lender: UInt64, number: UInt64, segment: UInt64, segmentSize: Int, offset: Int, count: Int) {
        (self.lender, self.number, self.segment) = (lender, number, segment)
        (self.segmentSize, self.offset, self.count) = (segmentSize, offset, count)
    }

    /// Reads a record; nil when it is none: of no number, or not within its segment.
    init?(_ body: ArraySlice<UInt8>) {
        guard body.count == Self.size else { return nil }
        let bytes = Array(body)
        lender = bytes.littleEndian(at: 0)
        number = bytes.littleEndian(at: 8)
        segment = bytes.littleEndian(at: 16)
        segmentSize = Int(clamping: bytes.littleEndian(at: 24) as UInt64)
        offset = Int(clamping: bytes.littleEndian(at: 32) as UInt64)
        count = Int(clamping: bytes.littleEndian(at: 40) as UInt64)
        guard number > 0, (1...MemoryPool.largestLoan).contains(segmentSize), offset <= segmentSize,
            count <= segmentSize - offset
        else { return nil }
    }
}
