// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
