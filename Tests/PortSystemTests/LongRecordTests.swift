// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import PortSystem
import RawRing
import TestSupport
import Testing

/// What goes past the caches of its writer is written by other instructions, in steps of a line.
@Suite("long records in shared memory", .census) struct LongRecordTests {
    private static let lengths = [8191, 8192, 8193, 8255, 8256, 8257, 20_000]

    private static func pattern(_ count: Int, _ seed: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) }
    }

    @Test(
        "bytes come out as they went in, and none beside them is written, wherever in a line a copy begins",
        arguments: lengths)
    func places(count: Int) throws {
        let ring = RecordRing(try RawRing().memory, isSecond: false)
        for offset in [0, 1, 8, 33, 63] {
            // The last of them go around the end.
            for position in [0, 8, 24, 1040, RecordRing.capacity - 8, RecordRing.capacity - 8200].map({ $0 + offset }) {
                let empty = [UInt8](repeating: 0xEE, count: RecordRing.capacity)
                empty.withUnsafeBytes { ring.put($0, at: 0) }
                let source = Self.pattern(count + 64, offset)
                source[offset..<offset + count].withUnsafeBytes { ring.put($0, at: UInt64(position)) }

                var expected = empty
                for (index, byte) in source[offset..<offset + count].enumerated() {
                    expected[(position + index) % RecordRing.capacity] = byte
                }
                #expect(ring.bytes(RecordRing.capacity, at: 0) == expected, "\(position)")

                var target = [UInt8](repeating: 0x55, count: count + 128)
                target.withUnsafeMutableBytes {
                    ring.get(UnsafeMutableRawBufferPointer(rebasing: $0[offset..<offset + count]), at: UInt64(position))
                }
                #expect(target[offset..<offset + count].elementsEqual(source[offset..<offset + count]), "\(position)")
                #expect((target[..<offset] + target[(offset + count)...]).allSatisfy { $0 == 0x55 }, "\(position)")
            }
        }
    }

    @Test("a reader on another thread never sees a record before all of its bytes: 4,000 records")
    func order() throws {
        let memory = try RawRing()
        let other = try #require(try SharedMemory.map(memory.file, size: RecordRing.pairSize))
        let total: UInt64 = 4000
        let sizes = { @Sendable (number: UInt64) in 8192 + Int(number * 977 % 24_000) }
        let thread = runOnThread {
            var writer = RecordWriter(RecordRing(memory.memory, isSecond: false))
            for number in 0..<total {
                let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: sizes(number))
                while writer.write((number, 0, 0, 0, 0), payload[...]) == .full {}
            }
        }
        var (reader, next) = (RecordReader(RecordRing(other, isSecond: false), limit: 65_536), UInt64(0))
        while next < total {
            switch reader.read() {
            case .empty: continue
            case .packet(let words, let payload)
            where words.0 == next
                && payload == [UInt8](repeating: UInt8(truncatingIfNeeded: next), count: sizes(next)):
                next += 1
            default:
                Issue.record("record \(next) is another")
                reader.ring.close()
                next = total
            }
        }
        try thread.join()
    }
}
