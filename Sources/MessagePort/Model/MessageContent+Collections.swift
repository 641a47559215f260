// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
