// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension MessageContent where Self: FixedWidthInteger {
    /// Reads the integer's bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes the integer's bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension Int8: MessageContent {}
extension Int16: MessageContent {}
extension Int32: MessageContent {}
extension Int64: MessageContent {}
extension UInt8: MessageContent {}
extension UInt16: MessageContent {}
extension UInt32: MessageContent {}
extension UInt64: MessageContent {}

extension Int: MessageContent {
    /// Reads 8 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) {
        let wide: Int64 = try reader.readInteger()
        guard let number = Int(exactly: wide) else { throw reader.malformed("\(wide) does not fit") }
        self = number
    }
    /// Writes 8 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: Int64(self)) }
}

extension UInt: MessageContent {
    /// Reads 8 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) {
        let wide: UInt64 = try reader.readInteger()
        guard let number = UInt(exactly: wide) else { throw reader.malformed("\(wide) does not fit") }
        self = number
    }
    /// Writes 8 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: UInt64(self)) }
}

extension Bool: MessageContent {
    /// Reads one byte, 0 or 1.
    public init(from reader: inout MessageReader) throws(PortError) {
        let byte: UInt8 = try reader.readInteger()
        guard byte <= 1 else { throw reader.malformed("\(byte) is neither 0 nor 1") }
        self = byte == 1
    }
    /// Writes one byte, 0 or 1.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: UInt8(self ? 1 : 0)) }
}

extension Double: MessageContent {
    /// Reads the 64 bits of the number.
    public init(from reader: inout MessageReader) throws(PortError) { self.init(bitPattern: try reader.readInteger()) }
    /// Writes the 64 bits of the number.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: bitPattern) }
}

extension Float: MessageContent {
    /// Reads the 32 bits of the number.
    public init(from reader: inout MessageReader) throws(PortError) { self.init(bitPattern: try reader.readInteger()) }
    /// Writes the 32 bits of the number.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: bitPattern) }
}
