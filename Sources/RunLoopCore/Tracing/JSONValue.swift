// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value of JSON (RFC 8259), to be written as UTF-8.
package enum JSONValue {
    case null
    case text(String)
    /// A number's digits, in JSON's notation.
    case number(String)
    case flag(Bool)
    case array([JSONValue])
    case object([(String, JSONValue)])

    package static func number(_ value: some BinaryInteger) -> JSONValue {
        .number(String(value))
    }

    /// Appends the value's JSON.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .text(let text): Self.append(quoted: text, to: &bytes)
        case .number(let digits): bytes += digits.utf8
        case .flag(let flag): bytes += (flag ? "true" : "false").utf8
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, (key, value)) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.append(quoted: key, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Beyond what JSON requires, writes as a number everything that a terminal might obey or a reader not see: control
    /// characters, also those beyond ASCII, format characters such as a change of direction, and line separators.
    private static func append(quoted text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": bytes += "\\\(scalar)".utf8
            case " "..."~": bytes.append(UInt8(scalar.value))
            default:
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator:
                    for unit in String(scalar).utf16 {
                        let digits = String(unit, radix: 16)
                        bytes += "\\u\(String(repeating: "0", count: 4 - digits.utf8.count))\(digits)".utf8
                    }
                default: bytes += String(scalar).utf8
                }
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
