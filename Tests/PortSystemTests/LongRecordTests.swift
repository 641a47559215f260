// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import PortSystem
import RawRing
import Synchronization
import TestSupport
import Testing

/// Long records go past the caches of their producer: other instructions write them, in steps of a cache line.
@Suite("long records in shared memory", .leakCheck) struct LongRecordTests {
    private static let lengths = [8191, 8192, 8193, 8255, 8256, 8257, 20_000]

    private static func pattern(_ count: Int, _ seed: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) }
    }

    @Test(
        "bytes come out as they went in, and none beside them is written, wherever in a line a copy begins",
        arguments: lengths)
    func positions(count: Int) throws {
        let (memory, back) = (try RawRing(), try RawRing())
        let ring = SharedRing(from: memory.memory, to: back.memory)
        let empty = [UInt8](repeating: 0xEE, count: SharedRing.capacity)
        for offset in [0, 1, 8, 33, 63] {
            // The last of them wrap around the end.
            for position in [0, 8, 24, 1040, SharedRing.capacity - 8, SharedRing.capacity - 8200].map({ $0 + offset }) {
                empty.withUnsafeBytes { ring.put($0, at: 0) }
                let source = Self.pattern(count + 64, offset)
                source[offset..<offset + count].withUnsafeBytes { ring.put($0, at: UInt64(position)) }

                var expected = empty
                for (index, byte) in source[offset..<offset + count].enumerated() {
                    expected[(position + index) % SharedRing.capacity] = byte
                }
                #expect(ring.bytes(SharedRing.capacity, at: 0) == expected, "\(position)")

                var target = [UInt8](repeating: 0x55, count: count + 128)
                target.withUnsafeMutableBytes {
                    ring.get(UnsafeMutableRawBufferPointer(rebasing: $0[offset..<offset + count]), at: UInt64(position))
                }
                #expect(target[offset..<offset + count].elementsEqual(source[offset..<offset + count]), "\(position)")
                #expect((target[..<offset] + target[(offset + count)...]).allSatisfy { $0 == 0x55 }, "\(position)")
            }
        }
        #expect((0..<RawRing.records).allSatisfy { memory[$0] == 0 })
        #expect((0..<RawRing.wordCount).allSatisfy { back[$0] == 0 })
    }

    @Test("two threads, each with its own mapping: every long record once, in order, none changed")
    func order() throws {
        let (memory, back) = (try RawRing(), try RawRing())
        let (memoryThere, backThere) = (try memory.mapped(), try back.mapped())
        let isOver = Atomic<Bool>(false)
        let total: UInt64 = 4000
        let payload = { @Sendable (number: UInt64) in
            [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 8192 + Int(number * 977 % 24_000))
        }
        let thread = runOnThread {
            var producer = RingProducer(SharedRing(from: memory.memory, to: backThere))
            // So that a consumer that misses a record does not wait for it.
            defer { isOver.store(true, ordering: .sequentiallyConsistent) }
            for number in 0..<total {
                var outcome = RingProducer.Outcome.full
                while outcome == .full, !producer.ring.isClosed {
                    outcome = producer.write((number, 0, 0, 0, 0), payload(number)[...])
                    if outcome == .full { sysYield() }
                }
                guard case .written = outcome else { return }
            }
        }
        var (consumer, next) = (RingConsumer(SharedRing(from: memoryThere, to: back.memory), limit: 65_536), UInt64(0))
        while next < total {
            switch consumer.read() {
            case .packet(let words, let bytes) where words.0 == next && bytes == payload(next):
                next += 1
                continue
            case .empty where !isOver.load(ordering: .sequentiallyConsistent) || consumer.hasMore:
                sysYield()
                continue
            default: break
            }
            Issue.record("record \(next) is missing, or another")
            consumer.ring.close()
            break
        }
        try thread.join()
    }
}
