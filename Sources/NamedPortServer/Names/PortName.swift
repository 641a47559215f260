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

// MARK: - FileName

// A name as a file name. Letters and digits of ASCII, '_', '-' and '.' stand for themselves, but not a '.' at the
// beginning; every other byte is '%' and two upper-case hexadecimal digits. Where that would exceed 200 bytes, the file
// name is "%%" and the name's bytes in base64url (RFC 4648, section 5) without padding, at most 173 bytes. A '%' of the
// name itself is always written "%25", so no name of the first form begins with "%%".
// A name has exactly one file name: a file name that decodes to a name but is not that name's own stands for no name.
extension PortName {
    private static let escapedLimit = 200
    private static let percent = UInt8(ascii: "%")

    /// The file name that stands for this name, at most 200 bytes of ASCII.
    package var fileName: String {
        let bytes = Array(string.utf8)
        let escaped = Self.escape(bytes)
        if escaped.count <= Self.escapedLimit { return String(decoding: escaped, as: UTF8.self) }
        return String(decoding: [Self.percent, Self.percent] + Self.encode(bytes), as: UTF8.self)
    }

    /// The name that a file name stands for; nil when it stands for none.
    package init?(fileName: String) {
        let encoded = Array(fileName.utf8)
        let decoded =
            encoded.starts(with: [Self.percent, Self.percent])
            ? Self.decode(encoded.dropFirst(2)) : Self.unescape(encoded)
        guard let decoded, let string = String(validating: decoded, as: UTF8.self), let name = try? PortName(string),
            name.fileName.utf8.elementsEqual(encoded)
        else { return nil }
        self = name
    }

    private static func escape(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for (index, byte) in bytes.enumerated() {
            if isPlain(byte) && !(index == 0 && byte == UInt8(ascii: ".")) {
                result.append(byte)
            } else {
                result += [percent, digit(byte >> 4), digit(byte & 15)]
            }
        }
        return result
    }

    private static func unescape(_ bytes: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == percent else {
                result.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value) else {
                return nil
            }
            result.append(high << 4 | low)
        }
        return result
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"): true
        default: false
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

// MARK: - Base64

extension PortName {
    /// The alphabet of RFC 4648, section 5, which is used without padding.
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    private static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for byte in bytes {
            bits = (bits << 8 | UInt32(byte)) & 0xFFFF
            count += 8
            while count >= 6 {
                count -= 6
                result.append(alphabet[Int(bits >> count & 63)])
            }
        }
        if count > 0 { result.append(alphabet[Int(bits << (6 - count) & 63)]) }
        return result
    }

    /// Nil for a byte that is not of the alphabet. Bits left over at the end are dropped, so several texts may give the
    /// same bytes.
    private static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        for character in text {
            guard let value = alphabet.firstIndex(of: character) else { return nil }
            bits = (bits << 6 | UInt32(value)) & 0xFFFF
            count += 6
            if count >= 8 {
                count -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        return result
    }
}
