// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Testing

@Suite("MessageContent") struct MessageContentTests {
    struct Order: MessageContent, Equatable {
        var number: UInt32
        var note: String?
        var sizes: [Int16]

        init(number: UInt32, note: String?, sizes: [Int16]) {
            (self.number, self.note, self.sizes) = (number, note, sizes)
        }

        init(from reader: inout MessageReader) throws(PortError) {
            number = try reader.read()
            note = try reader.read()
            sizes = try reader.read()
        }

        func write(to writer: inout MessageWriter) {
            writer.write(number)
            writer.write(note)
            writer.write(sizes)
        }
    }

    final class Chain: MessageContent {
        let next: Chain?

        init(next: Chain?) { self.next = next }

        required init(from reader: inout MessageReader) throws(PortError) { next = try reader.read() }

        func write(to writer: inout MessageWriter) { writer.write(next) }
    }

    private func roundTrip<Value: MessageContent & Equatable>(_ values: Value...) throws {
        for value in values { #expect(try MachMessage(content: value).content(as: Value.self) == value) }
    }

    private func error<Value: MessageContent>(reading type: Value.Type, from bytes: [UInt8]) -> PortError? {
        do throws(PortError) {
            _ = try MachMessage(bytes: bytes).content(as: type)
            return nil
        } catch {
            return error
        }
    }

    @Test("what is written is read") func everyType() throws {
        try roundTrip(Int8.min, -1, .max)
        try roundTrip(Int16.min, -1, .max)
        try roundTrip(Int32.min, -1, .max)
        try roundTrip(Int64.min, -1, .max)
        try roundTrip(Int.min, -1, .max)
        try roundTrip(UInt8.min, .max)
        try roundTrip(UInt16.min, .max)
        try roundTrip(UInt32.min, .max)
        try roundTrip(UInt64.min, .max)
        try roundTrip(UInt.min, .max)
        try roundTrip(true, false)
        try roundTrip(0.5, -.infinity)
        try roundTrip(Float(0.25))
        try roundTrip("", "Gr\u{fc}\u{df}e", "a\0b")
        try roundTrip([UInt8](), [0, 255])
        try roundTrip([[String]](), [[], ["a", ""]])
        try roundTrip(Int?.none, 5)
        try roundTrip(Int??.none, .some(nil), 5)
        try roundTrip(Order(number: 7, note: "x", sizes: [1, -1]), Order(number: 0, note: nil, sizes: []))
    }

    @Test("the bytes are those that the page head promises") func bytes() {
        #expect(MachMessage(content: UInt16(0x0102)).bytes == [2, 1])
        #expect(MachMessage(content: "hi").bytes == [2, 0, 0, 0, 0x68, 0x69])
        #expect(MachMessage(content: [true, false]).bytes == [2, 0, 0, 0, 1, 0])
        #expect(MachMessage(content: UInt8?.some(9)).bytes == [1, 9])
        #expect(MachMessage(content: Int(-1)).bytes == .init(repeating: 255, count: 8))
    }

    @Test("every cut of a value is an error, and nothing traps") func cuts() {
        let whole = MachMessage(content: Order(number: 7, note: "xyz", sizes: [1, 2, 3])).bytes
        for count in 0..<whole.count {
            #expect(error(reading: Order.self, from: Array(whole.prefix(count)))?.code == .malformedContent)
        }
        #expect(error(reading: Order.self, from: whole) == nil)
        let longer = error(reading: Order.self, from: whole + [0])
        #expect(longer?.code == .malformedContent)
        #expect(longer.map { "\($0)" }?.contains("1 bytes are left over") == true)
    }

    @Test("false counts, bad booleans and text that is no UTF-8 are errors") func falseCounts() {
        #expect(error(reading: [UInt8].self, from: [255, 255, 255, 255, 1])?.code == .malformedContent)
        #expect(error(reading: [Order].self, from: [255, 255, 255, 255, 1])?.code == .malformedContent)
        #expect(error(reading: Bool.self, from: [2])?.code == .malformedContent)
        #expect(error(reading: String.self, from: [1, 0, 0, 0, 0xff])?.code == .malformedContent)
        #expect(error(reading: Int?.self, from: [7])?.code == .malformedContent)
    }

    @Test("values that are nested too deeply are an error") func depth() throws {
        let shallow = [UInt8](repeating: 1, count: 10) + [0]
        #expect(error(reading: Chain.self, from: shallow) == nil)
        let deep = [UInt8](repeating: 1, count: 1 << 20) + [0]
        #expect(error(reading: Chain.self, from: deep)?.code == .malformedContent)
    }

    @Test("byte components are read in place, those beyond the last as empty") func inPlace() {
        let message = MachMessage(components: [
            .bytes([1, 2]), .right(SendRight(DeadPort(.nowhere))), .bytes([3]),
        ])
        #expect(message.byteComponentCount == 2)
        #expect(message.withBytes { $0.byteCount } == 2)
        #expect(message.withBytes(at: 1) { $0.byteCount } == 1)
        #expect(message.withBytes(at: 2) { $0.byteCount } == 0)
        #expect(message.withBytes(at: -1) { $0.byteCount } == 0)
    }

    @Test("bytes that are built in place are not copied when they are sent on") func sameStorage() {
        let message = MachMessage(byteCapacity: 100) { span in for byte in UInt8(0)..<100 { span.append(byte) } }
        let copy = message
        func address(_ message: MachMessage) -> Int {
            message.bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
        }
        #expect(address(copy) == address(message))
        #expect(message.bytes == Array(0..<100))
    }
}
