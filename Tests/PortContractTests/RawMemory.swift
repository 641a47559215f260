// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

/// Memory files with any pages and seals: what a peer may send that does not use this library.
enum RawMemory {
    private static let sealSeal: CInt = 1, shrink: CInt = 2, grow: CInt = 4, write: CInt = 8, futureWrite: CInt = 16
    /// What memory of a pool has: its maker alone writes.
    static let seals = sealSeal | shrink | grow | futureWrite
    /// What sealed memory has: nobody writes.
    static let contentSeals = sealSeal | shrink | grow | write
    static let withoutGrow = seals & ~grow

    /// What lends by hand.
    static let lender: UInt64 = 9

    static let addSeals: CInt = 1033
    static let keepSize: CInt = 1, punchHole: CInt = 2, zeroRange: CInt = 16

    /// Swift's module of the C library has neither.
    private static let memoryFile = unsafeBitCast(
        dlsym(nil, "memfd_create"), to: (@convention(c) (UnsafePointer<CChar>, CUnsignedInt) -> CInt).self)
    static let fallocate = unsafeBitCast(
        dlsym(nil, "fallocate"), to: (@convention(c) (CInt, CInt, Int, Int) -> CInt).self)

    /// Makes a memory file.
    ///
    /// - Parameters:
    ///   - size: its bytes.
    ///   - pages: where pages are allocated, also beyond its end; all of it unless said otherwise.
    ///   - seals: its seals.
    /// - Returns: the file.
    /// - Throws: when the kernel makes none.
    static func file(_ size: Int, pages: Range<Int>? = nil, seals: CInt = seals) throws -> SharedDescriptor {
        let file = SharedDescriptor(owning: memoryFile("port-raw", 3))
        let pages = pages ?? 0..<size
        try #require(ftruncate(file.rawValue, size) == 0)
        if !pages.isEmpty {
            try #require(fallocate(file.rawValue, keepSize, pages.lowerBound, pages.count) == 0)
        }
        if seals != 0 { try #require(fcntl(file.rawValue, addSeals, seals) == 0) }
        return file
    }
}

/// A message about memory as a peer writes it.
struct RawRecords {
    private(set) var payload: [UInt8] = []
    private(set) var componentCount = 0
    private(set) var files: [SharedDescriptor] = []

    mutating func append(_ kind: ComponentKind, _ body: [UInt8] = [], _ file: SharedDescriptor? = nil) {
        payload.append(littleEndian: kind.head(body.count))
        payload += body
        if !kind.isLoan, !kind.isReplyPort { componentCount += 1 }
        if let file { files.append(file) }
    }

    /// A segment's file comes with the end of a pipe; any descriptor does for that.
    mutating func append(_ loan: LoanRecord, _ file: SharedDescriptor? = nil) {
        append(file == nil ? .loan : .loanInNewSegment, loan.bytes, file)
        if let file { files.append(file) }
    }

    /// Appends the head of a record, and fewer bytes than that says.
    mutating func append(_ kind: ComponentKind, length: Int, _ body: [UInt8]) {
        payload.append(littleEndian: kind.head(length))
        payload += body
    }

    func header(asks: UInt64 = 0, answers: UInt64 = 0) -> PacketHeader {
        PacketHeader(
            kind: .message, descriptorCount: UInt16(files.count), messageID: 1, componentCount: UInt32(componentCount),
            asks: asks, answers: answers, totalLength: UInt64(payload.count))
    }
}

extension LoanRecord {
    init(_ number: UInt64, segment: UInt64 = 1, size: Int = 8192, offset: Int = 0, count: Int = 10) {
        self.init(
            lender: RawMemory.lender, number: number, segment: segment, segmentSize: size, offset: offset, count: count)
    }
}

extension RawPeer {
    /// Sends a message; waits for room.
    func send(_ records: RawRecords, asks: UInt64 = 0, answers: UInt64 = 0) throws {
        while try !send(records.header(asks: asks, answers: answers), records.payload, records.files) {
            if try sysPoll(socket.rawValue, .writable, until: Watchdog.deadline).isEmpty { throw NothingCame() }
        }
    }

    /// Sends a message of one memory.
    func lend(_ loan: LoanRecord, _ file: SharedDescriptor? = nil, asks: UInt64 = 0, answers: UInt64 = 0) throws {
        var records = RawRecords()
        records.append(loan, file)
        records.append(.lentMemory)
        try send(records, asks: asks, answers: answers)
    }

    /// Polls the other end until that has ended the connection.
    func waitForEnd(_ poll: () throws -> Void) throws { try wait([.peerClosed, .hangUp], poll) }

    /// Polls the other end until it has sent a packet, or has ended the connection.
    func waitForPacket(_ poll: () throws -> Void) throws { try wait(.readable, poll) }

    private func wait(_ events: EpollEvents, _ poll: () throws -> Void) throws {
        let deadline = Watchdog.deadline
        while try sysPoll(socket.rawValue, [.readable, .peerClosed], until: .distantPast).isDisjoint(with: events) {
            if .now >= deadline { throw NothingCame() }
            try poll()
        }
    }

    /// Waits for a packet of a kind, and skips others before it.
    ///
    /// - Returns: its head, and its descriptors; nil at the end of the connection.
    func nextPacket(_ kind: PacketKind) throws -> (header: PacketHeader, descriptors: [SharedDescriptor])? {
        while let packet = try nextPacket() { if packet.header.kind == kind { return packet } }
        return nil
    }

    /// Whether the connection was refused as one that breaks the format.
    func isRefused() throws -> Bool {
        try nextPacket(.refused)?.header.messageID == Int32(PortError.Code.malformedPacket.rawValue)
    }
}

extension MachPort {
    /// Receives a message of one memory, with nothing that a wait makes.
    func expectMemory() throws {
        let deadline = Watchdog.deadline
        while true {
            if let message = try tryReceive() { return #expect(message.memory.count == 1) }
            if .now >= deadline { throw NothingCame() }
            yieldThread()
        }
    }

    /// Receives what has come: nothing but what the port's runtime handles.
    func expectNone() throws {
        let message = try tryReceive()
        #expect(message?.id == nil)
    }
}
