// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// Why reading memory in a message cannot fail (SIGBUS): the kernel refuses what would remove its pages, to its maker
/// and to a peer that has its file.
@Suite("seals of memory", .contract) struct MemorySealTests {
    private static let count = 10_000

    /// The calls that would change the memory or its pages, and that the kernel did not refuse.
    private static func unrefused(_ file: CInt) -> [String] {
        var size = stat()
        fstat(file, &size)
        let count = Int(size.st_size)
        var unrefused: [String] = []
        func expect(_ name: String, _ codes: [CInt] = [EPERM], _ call: () -> Int) {
            errno = 0
            let result = call()
            if result != -1 || !codes.contains(errno) { unrefused.append("\(name): \(result), errno \(errno)") }
        }
        expect("ftruncate to nothing") { Int(ftruncate(file, 0)) }
        expect("ftruncate by a byte") { Int(ftruncate(file, count - 1)) }
        expect("ftruncate to more") { Int(ftruncate(file, 2 * count)) }
        expect("punch a hole") { Int(RawMemory.fallocate(file, RawMemory.punchHole | RawMemory.keepSize, 0, count)) }
        expect("zero a range", [EPERM, EOPNOTSUPP]) { Int(RawMemory.fallocate(file, RawMemory.zeroRange, 0, count)) }
        expect("allocate beyond the end") { Int(RawMemory.fallocate(file, 0, count, 4096)) }
        expect("allocate beyond the end, with its size") {
            Int(RawMemory.fallocate(file, RawMemory.keepSize, count, 4096))
        }
        expect("write") { pwrite(file, [1], 1, 0) }
        expect("write beyond the end") { pwrite(file, [1], 1, count) }
        expect("another seal") { Int(fcntl(file, RawMemory.addSeals, RawMemory.contentSeals)) }
        expect("open to truncate it") { Int(open("/proc/self/fd/\(file)", O_RDWR | O_TRUNC)) }
        expect("a writable mapping") {
            Int(bitPattern: mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0))
        }
        let view = mmap(nil, count, PROT_READ, MAP_SHARED, file, 0)
        // Before Linux 6.7 what is sealed is not mapped so.
        if let view, view != MAP_FAILED {
            expect("make a mapping writable", [EACCES]) { Int(mprotect(view, count, PROT_READ | PROT_WRITE)) }
            expect("remove pages by a mapping", [EACCES, EPERM, EINVAL]) { Int(madvise(view, count, 9)) }
            munmap(view, count)
        }
        return unrefused
    }

    /// Memory of the pool, whose bytes are their places, and its mapping as its maker has it.
    private func filled(_ pool: MemoryPool) throws -> (MessageMemory, MemorySlot) {
        var loan = try pool.loan(Self.count)
        loan.withBytes { bytes in
            for index in 0..<Self.count {
                bytes.storeBytes(of: UInt8(truncatingIfNeeded: index), toByteOffset: index, as: UInt8.self)
            }
        }
        let memory = loan.freeze()
        guard case .slot(let slot) = memory.storage else { throw NothingCame() }
        return (memory, slot)
    }

    private let expected = (0..<count).map { UInt8(truncatingIfNeeded: $0) }

    @Test("the maker of a pool's memory can remove no page of it, and its receiver reads all")
    func maker() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, port) = (MemoryPool(), try bench.port())
            let (memory, slot) = try filled(pool)
            try bench.right(to: port).send(MachMessage(memory: memory))
            let received = try #require(try port.next().memory.first)
            let file = try #require(slot.segment.file)
            #expect(Self.unrefused(file.rawValue) == [])
            #expect(madvise(slot.segment.base, slot.segment.size, 9) == -1 && errno == EPERM)
            #expect(received.grade == .shared && received.copy() == expected)
        }
    }

    @Test("a receiver that has the file can remove no page of it and write nothing")
    func receiver() async throws {
        try await onBench(over: .socket) { bench in
            let (pool, expected) = (MemoryPool(), expected)
            let (memory, slot) = try filled(pool)
            let size = slot.segment.size
            let (right, thread) = try bench.rawListener { peer in
                let file = try #require(try peer.nextPacket(.message)?.descriptors.first)
                #expect(Self.unrefused(file.rawValue) == [])
                let mapped = try #require(try SharedMemory.map(file, size: size, allocates: false))
                #expect(madvise(mapped.base, mapped.size, 9) == -1)
                #expect(mapped.copy(Self.count) == expected)
            }
            try right.send(MachMessage(memory: memory))
            try thread.join()
            #expect(memory.copy() == expected)
        }
    }

    @Test("a child of the maker, which has its mappings and files, can remove no page either")
    func child() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread {
                let tests = MemorySealTests()
                let (memory, slot) = try tests.filled(MemoryPool())
                let file = try #require(slot.segment.file).rawValue
                let (base, size) = (slot.segment.base, slot.segment.size)
                let child = try forking {
                    let removed = madvise(base, size, 9) != -1 || errno != EPERM
                    return MemorySealTests.unrefused(file) + (removed ? ["removed pages"] : [])
                }
                #expect(exitStatus(of: child) == 0)
                #expect(memory.copy() == tests.expected)
            }
        }
    }

    @Test("the maker of sealed memory cannot change it any more, and its receiver reads all")
    func sealed() async throws {
        try await onBench(over: .socket) { bench in
            let (port, expected) = (try bench.port(), expected)
            var loan = try LoanedMemory(sealable: Self.count)
            loan.withBytes { bytes in
                for index in 0..<Self.count {
                    bytes.storeBytes(of: expected[index], toByteOffset: index, as: UInt8.self)
                }
            }
            let memory = loan.freeze()
            #expect(memory.grade == .sealed)
            guard case .sealed(let view, let file) = memory.storage else { throw NothingCame() }
            try bench.right(to: port).send(MachMessage(memory: memory))
            let received = try #require(try port.next().memory.first)
            #expect(Self.unrefused(file.rawValue) == [])
            #expect(madvise(view.base, view.size, 9) == -1)
            // The receiver has the file, too.
            guard case .sealed(_, let receivedFile) = received.storage else { throw NothingCame() }
            #expect(Self.unrefused(receivedFile.rawValue) == [])
            #expect(received.grade == .sealed && received.copy() == expected)
        }
    }

    @Test("a page of returns can be removed by nobody, either")
    func returnPage() async throws {
        try await onBench(over: .socket) { bench in
            let (port, pool) = (try bench.port(), MemoryPool())
            let right = try bench.right(to: port)
            let peer = try RawPeer(to: port, on: bench)
            try peer.lend(LoanRecord(1), RawMemory.file(8192))
            _ = try port.next()
            let page = try #require(try peer.nextPacket(.returnPage)?.descriptors.first)
            #expect(Self.unrefused(page.rawValue) == [])
            try right.send(MachMessage(memory: try filled(pool).0))
            _ = try port.next()
            #expect(pool.lentByteCount == 0)
        }
    }
}
