// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import MessagePort

/// A port's name: 1 to 128 bytes of UTF-8, any but NUL. Two names are the same when their bytes are: names that look
/// alike but have other code points are different.
package struct PortName: Hashable, Sendable, CustomStringConvertible {
    /// How many bytes a name may have.
    package static let limit = 128

    /// The name.
    package let string: String

    /// Checks a name.
    ///
    /// - Throws: `nameEmpty`, `nameTooLong`, `nameHasNUL`.
    package init(_ string: String) throws(PortError) {
        let count = string.utf8.count
        guard count > 0 else { throw PortError(.nameEmpty) }
        guard count <= Self.limit else { throw PortError(.nameTooLong, subject: .size(count, limit: Self.limit)) }
        guard !string.utf8.contains(0) else { throw PortError(.nameHasNUL, subject: .name(string)) }
        self.string = string
    }

    /// The name.
    package var description: String { string }

    package static func == (left: PortName, right: PortName) -> Bool {
        left.string.utf8.elementsEqual(right.string.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in string.utf8 { hasher.combine(byte) }
        hasher.combine(UInt8(0))
    }
}
