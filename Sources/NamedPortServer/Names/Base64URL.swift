// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Bytes in the alphabet of RFC 4648, section 5, without padding.
enum Base64URL {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    static func encode(_ bytes: [UInt8]) -> [UInt8] {
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
    static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
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
