// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The kind of a component of a message, as its record in a packet has it.
enum ComponentKind: UInt8, Sendable {
    case bytes = 1
    case right = 2
    case descriptor = 3
    case replyPort = 4

    /// The bytes before a record's body.
    static let headSize = 8

    /// The head of a record with a body of `length` bytes, as a number.
    func head(_ length: Int) -> UInt64 { UInt64(rawValue) | UInt64(length) << 32 }
}
