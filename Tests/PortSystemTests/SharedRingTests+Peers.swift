// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import RawRing
import TestSupport
import Testing

extension SharedRingTests {
    @Test(
        "an impossible tail is detected",
        arguments: [8, 55, 57, 8 + 65_544, 262_144 + 8, 1 << 40, 1 << 62, ~0] as [UInt64])
    func lyingTail(tail: UInt64) throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        ends.memory.tail = tail
        if tail > 56, tail & 7 == 0, tail <= 262_144 {
            #expect(Self.isPacket(ends.consumer.read(), 1, [1]))
            #expect(isBroken(ends.consumer.read()))
        } else {
            #expect(isBroken(ends.consumer.read()))
        }
    }

    @Test("a tail that goes back is detected")
    func tailGoesBack() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        #expect(Self.isPacket(ends.consumer.read(), 1, [1]))
        ends.memory.tail = 0
        #expect(isBroken(ends.consumer.read()))
    }

    @Test(
        "an impossible length or kind is detected",
        arguments: [39, 0, 65_537, 1 << 31, 42] as [UInt64], [0, 1, 2, 3, 1 << 31] as [UInt64])
    func lyingRecord(length: UInt64, kind: UInt64) throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        ends.memory[RawRing.records] = length | kind << 32
        switch (length, kind) {
        case (42, 1): #expect(!isBroken(ends.consumer.read()))
        case (_, 2):
            guard case .mark(let count) = ends.consumer.read() else { throw NotAMark() }
            #expect(count == Int(length))
        default: #expect(isBroken(ends.consumer.read()))
        }
    }

    @Test("an impossible head is detected", arguments: [1 << 62, 262_152, ~0, 4] as [UInt64])
    func lyingHead(head: UInt64) throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        ends.back.head = head
        #expect(ends.producer.isEmpty() == nil)
        while case .written = ends.producer.write(Self.head(1), [1]) {}
        #expect(ends.producer.write(Self.head(1), [1]) == .broken)
    }

    @Test("a record written while its consumer closes the ring is undecided until the consumer says how far it reads")
    func undecided() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        let (ring, back) = (ends.producer.ring, ends.back)
        #expect(ring.isRead(upTo: 56) == nil)
        back.end = 1 << 62
        #expect(ring.isRead(upTo: 56) == nil && ring.isClosed)
        #expect(ends.producer.write(Self.head(1), [1]) == .closed)
        back.end = 56 | 1 << 63
        #expect(ring.isRead(upTo: 56) == true && ring.isRead(upTo: 57) == false)
    }

    @Test("a side that finds its ring half closed closes it")
    func helped() throws {
        var ends = try Ends()
        #expect(ends.producer.write(Self.head(1), [1]) == .written(.asleep))
        ends.back.end = 1 << 62
        #expect(ends.consumer.hasMore)
        #expect(ends.back.end == UInt64(56) | RawRing.closed)
        #expect(Self.isPacket(ends.consumer.read(), 1, [1]))
        #expect(!ends.consumer.hasMore)
    }

    @Test("F-A11, F-B1: neither side can change the other's memory, or remove pages or bytes of either")
    func sealed() throws {
        let ends = try Ends()
        let writable = { (file: SharedDescriptor) in
            mmap(nil, SharedRing.memorySize, PROT_READ | PROT_WRITE, MAP_SHARED, file.rawValue, 0)
        }
        for file in [ends.memory.file, ends.back.file] {
            // F-A11, F-B1: a hole would be a missing page.
            #expect(Unnamed.allocate(file.rawValue, 3, 0, 4096) == -1 && errno == EPERM)
            #expect(ftruncate(file.rawValue, 0) == -1 && errno == EPERM)
            #expect(writable(file) == MAP_FAILED && errno == EPERM)
            #expect(write(file.rawValue, [1], 1) == -1 && errno == EPERM)
            #expect(fcntl(file.rawValue, Unnamed.addSeals, 0) == -1 && errno == EPERM)
        }
        #expect(madvise(ends.memory.memory.base, 4096, MADV_REMOVE) == -1)
        let mapped = try ends.memory.mapped()
        #expect(mprotect(mapped.base, mapped.size, PROT_READ | PROT_WRITE) == -1 && errno == EACCES)
    }

    @Test(
        "F-B1: memory that its maker's peers could change is not mapped, and pages that its maker left out come with the mapping"
    )
    func unreserved() throws {
        for (offset, seals) in [(nil, allSeals), (0, allSeals & ~16), (0, allSeals), (8192, allSeals)] as [(Int?, CInt)]
        {
            let file = SharedDescriptor(owning: Unnamed.makeFile("test", 3))
            #expect(ftruncate(file.rawValue, 8192) == 0)
            // F-B1: pages beyond the end count like others.
            if let offset { #expect(Unnamed.allocate(file.rawValue, offset > 0 ? 1 : 0, offset, 8192) == 0) }
            #expect(fcntl(file.rawValue, Unnamed.addSeals, seals) == 0)
            let isMapped = try SharedMemory.map(file, size: 8192) != nil
            #expect(isMapped == (seals == allSeals))
            var status = stat()
            #expect(fstat(file.rawValue, &status) == 0)
            if isMapped { #expect(Int(status.st_blocks) * 512 >= (offset ?? 0) + 8192) }
        }
    }

    /// Shrinking, growing, writing from now on, and seals.
    private var allSeals: CInt { 2 | 4 | 16 | 1 }

    @Test("only sealed memory of the right size is mapped")
    func foreignFiles() throws {
        try withScratchDirectory { try checkForeignFiles(in: $0) }
    }

    private func checkForeignFiles(in scratch: ScratchDirectory) throws {
        let (_, file) = try SharedMemory.make(size: 8192)
        #expect(try SharedMemory.map(file, size: 8192) != nil)
        #expect(try SharedMemory.map(file, size: 4096) == nil)
        #expect(ftruncate(file.rawValue, 0) == -1 && errno == EPERM)
        #expect(ftruncate(file.rawValue, 10_000) == -1 && errno == EPERM)
        let socket = SharedDescriptor(try sysPacketSocket())
        #expect(try SharedMemory.map(socket, size: 4096) == nil)
        let directory = SharedDescriptor(try sysOpen(scratch.path, .directory))
        let plain = SharedDescriptor(try sysOpen("file", in: directory.rawValue, .creating))
        #expect(ftruncate(plain.rawValue, 4096) == 0)
        #expect(try SharedMemory.map(plain, size: 4096) == nil)
    }

    #if PORT_FAULTS
    @Test(
        "the kernel's refusal is thrown", arguments: [SystemCall.memfd_create, .ftruncate, .fallocate, .fcntl, .mmap])
    func refused(call: SystemCall) {
        let (_, hits) = SystemCallFaults.with([.init(call, .fail(ENOMEM))]) {
            #expect(throws: SystemError(ENOMEM)) { try SharedMemory.make(size: 4096) }
        }
        #expect(hits == 1)
    }
    #endif
}
