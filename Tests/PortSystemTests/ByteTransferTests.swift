// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

@Suite("ByteTransfer", .leakCheck) struct ByteTransferTests {
    private func pipe() throws -> (reading: SharedDescriptor, writing: SharedDescriptor) {
        var ends: [CInt] = [-1, -1]
        guard Glibc.pipe(&ends) == 0 else { throw SystemError(errno) }
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        return (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
    }

    @Test("a read gives what is there, nil when there is nothing now, nothing at the end")
    func read() throws {
        let ends = Ends(try pipe())
        let reading = ends.reading.rawValue
        #expect(try sysRead(reading, capacity: 10) == nil)
        #expect(try sysWrite(#require(ends.writing).rawValue, [1, 2, 3]) == 3)
        #expect(try sysRead(reading, capacity: 2) == [1, 2])
        #expect(try sysRead(reading, capacity: 10) == [3])
        ends.writing = nil
        #expect(try sysRead(reading, capacity: 10) == [])
        withExtendedLifetime(ends) {}
    }

    private final class Ends {
        let reading: SharedDescriptor
        var writing: SharedDescriptor?

        init(_ ends: (reading: SharedDescriptor, writing: SharedDescriptor)) {
            (reading, writing) = ends
        }
    }

    @Test("a full pipe accepts a part, and then nothing now")
    func fullPipe() throws {
        let (reading, writing) = try pipe()
        try withExtendedLifetime(reading) {
            let bytes = [UInt8](repeating: 7, count: 1 << 20)
            let count = try #require(try sysWrite(writing.rawValue, bytes))
            #expect(count > 0 && count < bytes.count)
            #expect(try sysWrite(writing.rawValue, [1]) == nil)
        }
    }

    @Test("a file of several pieces is written and read whole", arguments: [0, 1, 4095, 4096, 4097, 100_000])
    func wholeFile(count: Int) throws {
        try withScratchDirectory { scratch in
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let file = try sysOpen(scratch.path("file"), .creating)
            try sysWriteAll(file.raw, bytes)
            let reading = try sysOpen(scratch.path("file"), .reading)
            #expect(try sysReadAll(reading.raw) == bytes)
        }
    }

    @Test("a directory cannot be read, a read-only file not written")
    func errors() throws {
        let directory = try sysOpen("/", .directory)
        #expect(throws: SystemError(EISDIR)) { try sysRead(directory.raw, capacity: 1) }
        let null = try sysOpen("/dev/null", .reading)
        #expect(throws: SystemError(EBADF)) { try sysWrite(null.raw, [1]) }
    }

    #if PORT_FAULTS
    @Test("short transfers lose nothing: the whole file is still written and read")
    func shortTransfers() throws {
        try withScratchDirectory { scratch in
            let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0) }
            let file = try sysOpen(scratch.path("file"), .creating)
            let writing = try SystemCallFaults.with([.init(.write, .shorten(to: 7), times: 100)]) {
                try sysWriteAll(file.raw, bytes)
            }
            let other = try sysOpen(scratch.path("file"), .reading)
            let reading = try SystemCallFaults.with([.init(.read, .shorten(to: 11), times: 50)]) {
                try sysReadAll(other.raw)
            }
            #expect(writing.hits == 100)
            #expect(reading.hits == 50)
            #expect(reading.result == bytes)
        }
    }
    #endif
}
