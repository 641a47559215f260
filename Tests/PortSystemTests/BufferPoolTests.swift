// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import PortSystem
import TestSupport
import Testing

@Suite("BufferPool", .leakCheck) struct BufferPoolTests {
    private func address(of bytes: [UInt8]) -> UInt { bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } }

    private func filled(_ byte: UInt8) -> [UInt8] {
        var bytes = BufferPool.take(BufferPool.capacity)
        for index in bytes.indices { bytes[index] = byte }
        return bytes
    }

    @Test(
        "a list that was returned serves its thread again, as long as it is wanted, and with its room",
        .enabled(if: BufferPool.isUsed, "a sanitizer checks memory: none is kept"), arguments: [1, 63, 64])
    func again(count: Int) throws {
        let same = try runOnThread {
            let bytes = filled(1)
            let address = address(of: bytes)
            BufferPool.leave(consume bytes)
            let again = BufferPool.take(count)
            return again.count == count && again.capacity >= BufferPool.capacity && self.address(of: again) == address
        }.join()
        #expect(same)
    }

    @Test("a list has as many bytes as are wanted, whether it is a returned one or not")
    func counts() throws {
        let counts = try runOnThread {
            (1...BufferPool.capacity).flatMap { count in
                let fresh = BufferPool.take(count)
                BufferPool.leave(filled(1))
                return [fresh.count - count, BufferPool.take(count).count - count]
            }
        }.join()
        #expect(counts.allSatisfy { $0 == 0 })
    }

    @Test("a list is one reference, which is counted: one with another reference is not pooled")
    func alone() throws {
        #expect(MemoryLayout<[UInt8]>.size == MemoryLayout<AnyObject>.size)
        let (held, taken) = try runOnThread {
            let held = (0..<100).map { _ in self.filled(1) }
            for bytes in held { BufferPool.leave(bytes) }
            let taken = (0..<100).map { _ in BufferPool.take(1) }
            return (Set(held.map(self.address)), taken.map(self.address))
        }.join()
        #expect(held.isDisjoint(with: taken))
    }

    @Test(
        "small, large and empty lists are not pooled",
        .enabled(if: BufferPool.isUsed, "a sanitizer checks memory: none is kept"))
    func others() throws {
        let capacities = try runOnThread {
            BufferPool.leave(filled(1))
            BufferPool.leave([])
            BufferPool.leave([1])
            BufferPool.leave([UInt8](repeating: 1, count: 4096))
            return [1, 1].map { BufferPool.take($0).capacity }
        }.join()
        #expect(capacities.allSatisfy((BufferPool.capacity..<256).contains))
    }

    @Test(
        "a list is pooled if the allocator gave it some more room than it was asked for",
        .enabled(if: BufferPool.isUsed, "a sanitizer checks memory: none is kept"))
    func roomy() throws {
        let same = try runOnThread {
            // The allocator may give these some more, too: then the next list is tried.
            let lists = (0..<100).lazy.map { _ -> [UInt8] in
                var bytes: [UInt8] = [1]
                bytes.reserveCapacity(BufferPool.capacity + 24)
                return bytes
            }
            var others: [[UInt8]] = []
            for bytes in lists {
                guard (BufferPool.capacity + 16..<BufferPool.capacity + 32).contains(bytes.capacity) else {
                    others.append(bytes)
                    continue
                }
                let address = self.address(of: bytes)
                BufferPool.leave(consume bytes)
                return self.address(of: BufferPool.take(BufferPool.capacity)) == address
            }
            return false
        }.join()
        #expect(same)
    }

    @Test(
        "a list for a few bytes has room enough to be pooled",
        .enabled(if: BufferPool.isUsed, "a sanitizer checks memory: none is kept"))
    func few() throws {
        let same = try runOnThread {
            let bytes = BufferPool.take(1)
            let address = address(of: bytes)
            BufferPool.leave(consume bytes)
            return self.address(of: BufferPool.take(BufferPool.capacity)) == address
        }.join()
        #expect(same)
    }

    @Test("full magazines go to threads with an empty one, newest first, up to a limit: then no list more is pooled")
    func depot() {
        let depot = Depot()
        var magazine = Magazine()
        for index in 0...Tuning.mostMagazines {
            for _ in 0..<Tuning.magazineSize { magazine.push(filled(UInt8(index))) }
            depot.empty(&magazine)
            #expect(magazine.isEmpty == (index < Tuning.mostMagazines))
        }
        magazine.push(filled(1))
        for _ in 0..<Tuning.mostMagazines {
            for _ in 0..<Tuning.magazineSize { #expect(magazine.take() != nil) }
            #expect(magazine.take() == nil)
            depot.refill(&magazine)
            #expect(magazine.isFull)
        }
        for _ in 0..<Tuning.magazineSize { _ = magazine.take() }
        depot.refill(&magazine)
        #expect(magazine.isEmpty)
    }

    @Test("threads that return and get lists at the same time never have the same list: 20,000 lists")
    func race() throws {
        let threads = (0..<4).map { index in
            runOnThread {
                var held: [[UInt8]] = []
                for round in 0..<5000 {
                    held.append(filled(UInt8(index)))
                    guard round % 50 == 49 else { continue }
                    let same = [UInt8](repeating: UInt8(index), count: BufferPool.capacity)
                    if held.contains(where: { $0 != same }) { return false }
                    while let bytes = held.popLast() { BufferPool.leave(consume bytes) }
                }
                return true
            }
        }
        for thread in threads { #expect(try thread.join()) }
    }
}
