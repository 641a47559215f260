// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a component of a message is, as its record in a packet says.
enum ComponentKind: UInt8, Sendable {
    case bytes = 1
    case right = 2
    case descriptor = 3
    case replyPort = 4

    /// The bytes before a record's body.
    static let headSize = 8

    /// The head of a record whose body has so many bytes, as a number.
    func head(_ length: Int) -> UInt64 { UInt64(rawValue) | UInt64(length) << 32 }
}
