// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("Slots of a pool", .seeded) struct SlotTableTests {
    @Test("a slot has room for its loan, and leaves at most a fifth of it unused above 16 KiB")
    func sizes() {
        for exponent in 0...30 {
            for offset in [-1, 0, 1] where (0...MemoryPool.largestLoan).contains((1 << exponent) + offset) {
                let count = (1 << exponent) + offset
                let size = SlotTable.slotSize(for: count)
                #expect(size >= max(count, 4096) && size % 4096 == 0)
                if count > 16_384 { #expect((size - count) * 5 <= size, "\(count) bytes in \(size)") }
                #expect(SlotTable.slotSize(for: size) == size)
            }
        }
    }

    @Test("the slot that was given back last is used first")
    func reuse() {
        var table = SlotTable(capacity: 1 << 20)
        #expect(table.takeSlot(ofSize: 4096) == nil)
        #expect(table.reserve(1 << 20) == [])
        let slots =
            [table.add(1, slotSize: 4096, count: 256)] + (0..<3).compactMap { _ in table.takeSlot(ofSize: 4096) }
        #expect(Set(slots).count == 4 && table.usedByteCount == 4 * 4096)
        for slot in slots { table.giveBack(slot, at: .now) }
        #expect(table.takeSlot(ofSize: 4096) == slots.last)
        #expect(table.takeSlot(ofSize: 8192) == nil)
    }

    @Test("memory that nobody uses makes room for other sizes, the oldest first; what is used stays")
    func replacement() {
        var table = SlotTable(capacity: 3 << 20)
        var slots: [SlotTable.Slot] = []
        for number in UInt64(1)...3 {
            #expect(table.reserve(1 << 20) == [])
            slots.append(table.add(number, slotSize: 1 << 20, count: 1))
        }
        #expect(table.reserve(1 << 20) == nil && table.reservedByteCount == 3 << 20)
        table.giveBack(slots[1], at: MonotonicInstant(nanoseconds: 5))
        table.giveBack(slots[0], at: MonotonicInstant(nanoseconds: 6))
        #expect(table.reserve(2 << 20) == [2, 1] && table.reservedByteCount == 3 << 20)
        table.unreserve(2 << 20)
        #expect(table.reservedByteCount == 1 << 20 && table.usedByteCount == 1 << 20)
        #expect(table.removeIdle(since: .distantFuture) == [])
        table.giveBack(slots[2], at: MonotonicInstant(nanoseconds: 7))
        #expect(table.hasIdleSegment && table.removeIdle(since: MonotonicInstant(nanoseconds: 6)) == [])
        #expect(table.removeIdle(since: MonotonicInstant(nanoseconds: 7)) == [3])
        #expect(!table.hasIdleSegment && table.reservedByteCount == 0 && table.usedByteCount == 0)
    }

    @Test("many slots of a size take few segments, whose sizes double")
    func growth() {
        var table = SlotTable(capacity: 1 << 30)
        var (counts, made): ([Int], UInt64) = ([], 0)
        while table.usedByteCount < 512 << 20 {
            if table.takeSlot(ofSize: 1 << 20) != nil { continue }
            let count = table.slotCount(ofSize: 1 << 20)
            #expect(table.reserve(count << 20) == [])
            made += 1
            _ = table.add(made, slotSize: 1 << 20, count: count)
            counts.append(count)
        }
        #expect(counts == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256])
    }

    @Test("random loans: no slot is used twice, and no more is reserved than the capacity")
    func random() {
        var random = Seed.generator()
        var table = SlotTable(capacity: 8 << 20)
        var (used, made, instant): ([(SlotTable.Slot, Int)], UInt64, Int64) = ([], 0, 0)
        for _ in 0..<20_000 {
            instant += 1
            if Bool.random(using: &random), let index = used.indices.randomElement(using: &random) {
                table.giveBack(used.remove(at: index).0, at: MonotonicInstant(nanoseconds: instant))
            } else {
                let size = SlotTable.slotSize(for: 1 << Int.random(in: 0...21, using: &random))
                if let slot = table.takeSlot(ofSize: size) {
                    used.append((slot, size))
                } else if case let count = table.slotCount(ofSize: size), table.reserve(size * count) != nil {
                    made += 1
                    used.append((table.add(made, slotSize: size, count: count), size))
                }
            }
            #expect(Set(used.map(\.0)).count == used.count && table.reservedByteCount <= 8 << 20)
            #expect(table.usedByteCount == used.reduce(0) { $0 + $1.1 })
        }
        for (slot, _) in used { table.giveBack(slot, at: .now) }
        _ = table.removeIdle(since: .distantFuture)
        #expect(table.reservedByteCount == 0)
    }
}

@Suite("Loans over a connection") struct LendTableTests {
    @Test("512 loans at a time, each with a number and a place of its own; a place that is taken is left out")
    func places() throws {
        var table = LendTable<Int>()
        let numbers = (0..<512).compactMap { table.add($0) }
        #expect(numbers == Array(1...512) && table.add(0) == nil)
        #expect(table.remove(1) == 0 && table.remove(1) == nil)
        // 513 has the place of 1.
        #expect(table.add(7) == 513 && table.add(0) == nil)
        #expect(table.remove(300) == 299)
        // The next number with the place of 300.
        #expect(table.add(8) == 812)
        #expect(table.remove(300) == nil)
        #expect(table.removeAll { $0 > 512 }.sorted() == [7, 8])
        #expect(table.removeAll { _ in true }.count == 510 && table.count == 0)
    }

    @Test("what was returned is removed one by one, from the end, though others are added and removed meanwhile")
    func oneByOne() throws {
        var table = LendTable<Int>()
        for loan in 1...9 { _ = table.add(loan) }
        var (position, removed) = (Int.max, [Int]())
        while let loan = table.removeLast(before: &position, where: { $0 % 2 == 1 }) {
            removed.append(loan)
            if loan == 7 { #expect(table.remove(8) == 8 && table.add(10) == 10) }
        }
        #expect(removed.sorted() == [1, 3, 5, 7, 9] && position == 0)
        #expect([2, 4, 6, 10].allSatisfy { table.contains($0) } && table.count == 4)
        #expect(table.removeLast(before: &position) { _ in true } == nil)
    }

    @Test("a record of a loan that is not within its segment is none")
    func records() {
        func record(_ number: UInt64 = 1, size: Int = 8192, offset: Int = 4096, count: Int = 4096) -> LoanRecord? {
            var bytes: [UInt8] = []
            for word in [9, Int(number), 3, size, offset, count] {
                bytes.append(littleEndian: UInt64(bitPattern: Int64(word)))
            }
            let read = LoanRecord(bytes[...])
            #expect(read == nil || read?.bytes == bytes)
            return read
        }
        #expect(record() != nil && record(count: 0) != nil)
        #expect(record(0) == nil && record(count: 4097) == nil && record(offset: 8193, count: 0) == nil)
        #expect(record(size: 0) == nil && record(size: MemoryPool.largestLoan + 1) == nil)
        #expect(record(offset: -1) == nil && record(count: -1) == nil && record(size: -1) == nil)
        #expect(LoanRecord([UInt8](repeating: 1, count: 47)[...]) == nil)
    }
}
