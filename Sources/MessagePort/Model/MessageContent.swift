// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
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
