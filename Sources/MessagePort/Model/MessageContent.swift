// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Values as bytes, without Foundation and without a schema: both sides name the type. Numbers are little-endian. A
// value of variable length is preceded by its length, a UInt32.
//
//   integer      its bytes; Int and UInt as 64 bits        Bool         one byte, 0 or 1
//   Double       the bits, as UInt64                       Float        the bits, as UInt32
//   String       count of UTF-8 bytes, the bytes           Array        count of elements, the elements
//   Optional     0, or 1 and the value

/// A value that can be sent as the bytes of a message.
///
/// Integers, `Bool`, `Float`, `Double`, `String`, and arrays and optionals of such values are. A type of your own
/// writes its properties one after the other, and reads them in the same order:
///
/// ```swift
/// struct Order: MessageContent {
///     var number: UInt32
///     var note: String?
///
///     init(from reader: inout MessageReader) throws(PortError) {
///         number = try reader.read()
///         note = try reader.read()
///     }
///
///     func write(to writer: inout MessageWriter) {
///         writer.write(number)
///         writer.write(note)
///     }
/// }
/// ```
public protocol MessageContent {
    /// Reads the value.
    ///
    /// - Parameter reader: returns what was written, in the same order.
    /// - Throws: ``PortError/Code/malformedContent`` when the bytes are not such a value.
    init(from reader: inout MessageReader) throws(PortError)

    /// Writes the value.
    ///
    /// - Parameter writer: collects the value's parts, in order.
    func write(to writer: inout MessageWriter)
}

// MARK: - Collections

extension String: MessageContent {
    /// Reads a count and that many bytes of UTF-8; other bytes are an error.
    public init(from reader: inout MessageReader) throws(PortError) {
        let count = try reader.readCount()
        let start = reader
        guard let text = String(validating: try reader.readRaw(count: count), as: UTF8.self) else {
            throw start.malformed("\(count) bytes are not UTF-8")
        }
        self = text
    }
    /// Writes the count of bytes and the bytes of UTF-8.
    public func write(to writer: inout MessageWriter) {
        writer.write(count: utf8.count)
        writer.write(raw: utf8)
    }
}

extension Array: MessageContent where Element: MessageContent {
    /// Reads a count and that many elements. Each must have at least one byte.
    public init(from reader: inout MessageReader) throws(PortError) {
        let count = try reader.readCount()
        if Element.self == UInt8.self {
            let bytes = [UInt8](try reader.readRaw(count: count))
            self = bytes as? Self ?? []
            return
        }
        self = []
        // The count does not exceed the number of bytes that are there; an element may be larger in memory than on the
        // wire.
        reserveCapacity(Swift.min(count, 1_024))
        for _ in 0..<count { append(try reader.read()) }
    }
    /// Writes the count of elements and the elements.
    public func write(to writer: inout MessageWriter) {
        writer.write(count: count)
        if let bytes = self as? [UInt8] { return writer.write(raw: bytes) }
        for element in self { writer.write(element) }
    }
}

extension Optional: MessageContent where Wrapped: MessageContent {
    /// Reads 0, or 1 and a value.
    public init(from reader: inout MessageReader) throws(PortError) {
        self = try reader.read(Bool.self) ? try reader.read(Wrapped.self) : nil
    }
    /// Writes 0, or 1 and the value.
    public func write(to writer: inout MessageWriter) {
        writer.write(self != nil)
        if let value = self { writer.write(value) }
    }
}

// MARK: - Numbers

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

/// Reads the values of a ``MessageContent``, and trusts nothing: what is missing or malformed throws.
public struct MessageReader: Sendable {
    /// How deep values may nest. It keeps a hostile message from exhausting the stack.
    public static let depthLimit = 64

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    /// Makes a reader of bytes.
    ///
    /// - Parameter bytes: what a ``MessageWriter`` wrote.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// How many bytes were not read yet.
    public var remainingCount: Int { bytes.count - position }

    /// Reads a value.
    ///
    /// - Parameter type: what it is.
    /// - Returns: the value.
    /// - Throws: ``PortError/Code/malformedContent`` when the bytes are not such a value, or nest deeper than
    ///   ``depthLimit``.
    public mutating func read<Value: MessageContent>(_ type: Value.Type = Value.self) throws(PortError) -> Value {
        guard depth < Self.depthLimit else {
            throw PortError(.malformedContent, subject: .size(depth + 1, limit: Self.depthLimit, of: .levels))
        }
        depth += 1
        defer { depth -= 1 }
        return try Value(from: &self)
    }

    /// Reads bytes that were written as they are.
    ///
    /// - Parameter count: how many.
    /// - Returns: the bytes.
    /// - Throws: ``PortError/Code/malformedContent`` when there are fewer.
    public mutating func readRaw(count: Int) throws(PortError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remainingCount else {
            throw malformed("\(count) bytes were to be read and \(remainingCount) are left")
        }
        defer { position += count }
        return bytes[position..<position + count]
    }

    /// Checks that everything was read.
    ///
    /// - Throws: ``PortError/Code/malformedContent`` when something is left.
    public func finish() throws(PortError) {
        if remainingCount > 0 { throw malformed("\(remainingCount) bytes are left over") }
    }

    mutating func readInteger<Number: FixedWidthInteger>() throws(PortError) -> Number {
        let start = try readRaw(count: Number.bitWidth / 8).startIndex
        return bytes.littleEndian(at: start)
    }

    /// Reads how many elements follow. Each takes at least one byte, so a false count is found before memory is
    /// allocated.
    mutating func readCount() throws(PortError) -> Int {
        let count: UInt32 = try readInteger()
        guard Int(count) <= remainingCount else {
            throw malformed("\(count) elements were announced and \(remainingCount) bytes are left")
        }
        return Int(count)
    }

    /// The error for bytes that are not what they should be, with the position.
    func malformed(_ reason: String) -> PortError {
        PortError(.malformedContent, subject: .text("at byte \(position): \(reason)"))
    }
}

/// Collects the bytes of a ``MessageContent``.
public struct MessageWriter: Sendable {
    /// What was written so far.
    public private(set) var bytes: [UInt8] = []

    /// Makes an empty writer.
    public init() {}

    /// Writes a value.
    ///
    /// - Parameter value: the value.
    public mutating func write<Value: MessageContent>(_ value: Value) {
        value.write(to: &self)
    }

    /// Writes bytes as they are, without their count.
    ///
    /// - Parameter raw: the bytes; the reader has to know how many they are.
    public mutating func write(raw: some Sequence<UInt8>) {
        bytes.append(contentsOf: raw)
    }

    /// Writes an integer, the lowest byte first.
    mutating func write<Number: FixedWidthInteger>(littleEndian number: Number) {
        bytes.append(littleEndian: number)
    }

    /// Writes how many elements or bytes follow. More than 4,294,967,295 trap: no message holds that many.
    mutating func write(count: Int) {
        guard let count = UInt32(exactly: count) else {
            fatalError("A message cannot hold \(count) elements; send them in parts.")
        }
        write(littleEndian: count)
    }
}

// MARK: - Messages

extension MachMessage {
    /// Makes a message of one part, the bytes of a value.
    ///
    /// - Parameters:
    ///   - id: what the message is about.
    ///   - content: the value.
    ///   - replyPort: where the receiver may reply.
    public init<Content: MessageContent>(id: Int32 = 0, content: Content, replyPort: SendRight? = nil) {
        var writer = MessageWriter()
        writer.write(content)
        self.init(id: id, bytes: writer.bytes, replyPort: replyPort)
    }

    /// The value that the first byte component holds.
    ///
    /// - Parameter type: what it is.
    /// - Returns: the value.
    /// - Throws: ``PortError/Code/malformedContent`` when the bytes are not such a value, or more bytes follow it.
    public func content<Content: MessageContent>(as type: Content.Type = Content.self) throws(PortError) -> Content {
        var reader = MessageReader(bytes)
        let content: Content = try reader.read()
        try reader.finish()
        return content
    }
}
