// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
