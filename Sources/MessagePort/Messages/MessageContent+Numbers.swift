// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension Int8: MessageContent {
    /// Reads one byte.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes one byte.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension Int16: MessageContent {
    /// Reads 2 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes 2 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension Int32: MessageContent {
    /// Reads 4 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes 4 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension Int64: MessageContent {
    /// Reads 8 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes 8 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension UInt8: MessageContent {
    /// Reads one byte.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes one byte.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension UInt16: MessageContent {
    /// Reads 2 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes 2 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension UInt32: MessageContent {
    /// Reads 4 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes 4 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension UInt64: MessageContent {
    /// Reads 8 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) { self = try reader.readInteger() }
    /// Writes 8 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: self) }
}

extension Int: MessageContent {
    /// Reads 8 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) {
        let wide: Int64 = try reader.readInteger()
        guard let number = Int(exactly: wide) else { throw reader.malformed("\(wide) does not fit.") }
        self = number
    }
    /// Writes 8 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: Int64(self)) }
}

extension UInt: MessageContent {
    /// Reads 8 bytes, the lowest first.
    public init(from reader: inout MessageReader) throws(PortError) {
        let wide: UInt64 = try reader.readInteger()
        guard let number = UInt(exactly: wide) else { throw reader.malformed("\(wide) does not fit.") }
        self = number
    }
    /// Writes 8 bytes, the lowest first.
    public func write(to writer: inout MessageWriter) { writer.write(littleEndian: UInt64(self)) }
}

extension Bool: MessageContent {
    /// Reads one byte, 0 or 1.
    public init(from reader: inout MessageReader) throws(PortError) {
        let byte: UInt8 = try reader.readInteger()
        guard byte <= 1 else { throw reader.malformed("\(byte) is neither 0 nor 1.") }
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
