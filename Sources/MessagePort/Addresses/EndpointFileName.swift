// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A file name in the directory of sockets: `<id>.lock`, `<id>.<n>`, or `<id>.<n>.new` while a socket is being made.
/// The id, 32 lower-case hexadecimal digits, belongs to one process.
package struct EndpointFileName: Hashable, Sendable {
    /// The id of the process to which it belongs.
    package let id: String
    /// Whether it is the id's lock file, not a socket.
    package let isLock: Bool

    /// Reads a file name; nil for one that is not of this form.
    package init?(_ name: String) {
        let parts = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 2 || parts.count == 3, parts[0].count == 32, parts[0].allSatisfy(Self.isHexadecimal) else {
            return nil
        }
        isLock = parts.count == 2 && parts[1].elementsEqual("lock".utf8)
        if !isLock {
            guard (1...20).contains(parts[1].count), parts[1].allSatisfy(Self.isDecimal) else { return nil }
            guard parts.count == 2 || parts[2].elementsEqual("new".utf8) else { return nil }
        }
        id = String(decoding: parts[0], as: UTF8.self)
    }

    /// The name of an id's lock file.
    package static func lock(of id: String) -> String { id + ".lock" }

    /// A fresh id.
    package static func makeID() -> String {
        var generator = SystemRandomNumberGenerator()
        return (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }.joined()
    }

    private static func isDecimal(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        isDecimal(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}
