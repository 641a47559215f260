// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation

/// A public function or initializer, as its source has it.
struct PublicCall {
    /// Its type, its name and its labels, as in `SendRight.send(_:within:)`.
    let name: String
    /// The comment, as one line.
    let comment: String
    let attributes: String
    let isAsync: Bool

    /// Without the labels.
    var baseName: Substring { name.prefix { $0 != "(" } }

    /// Whether it is unavailable in tasks because it blocks.
    var blocks: Bool { attributes.contains(#"noasync, message: "It blocks the thread."#) }

    /// Whether the comment says that the call itself waits.
    var saysThatItWaits: Bool {
        let own =
            #/
            (?:^|[.]\ +)(?:Waits|Blocks)\ | It\ blocks\ the\ thread | [Bb]locks\ the\ thread | This\ call\ waits\ for
            | how\ long\ to\ wait(?!\ at\ least) | the\ longest\ time | ,\ waiting\ | ,?\ and\ waits\ | how\ long\ each
            /#
        return comment.contains(own)
    }

    /// Those of a source file.
    static func all(in source: String) -> [PublicCall] {
        let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
        var (calls, types): ([PublicCall], [(indentation: Int, name: Substring)]) = ([], [])
        var (comment, attributes): ([Substring], [Substring]) = ([], [])
        for (index, line) in lines.enumerated() {
            let text = line.drop { $0 == " " }
            if text.isEmpty { continue }
            let indentation = line.utf8.count - text.utf8.count
            if text.hasPrefix("///") {
                comment.append(text.dropFirst(3).drop { $0 == " " })
            } else if text.hasPrefix("@available") || text == "@discardableResult" || text == "@inlinable" {
                attributes.append(text)
            } else {
                while let last = types.last, indentation <= last.indentation { types.removeLast() }
                if let type = declaredType(text) { types.append((indentation, type)) }
                if let (name, parameters) = declaredCall(text) {
                    let rest = String(parameters) + " " + lines[(index + 1)...].prefix(20).joined(separator: " ")
                    let (labels, effects) = labels(parameters.hasSuffix("{") ? String(parameters) : rest)
                    calls.append(
                        PublicCall(
                            name: "\(types.last?.name ?? "").\(name)(\(labels))",
                            comment: comment.joined(separator: " "),
                            attributes: attributes.joined(separator: " "), isAsync: effects.hasPrefix("async")))
                }
                (comment, attributes) = ([], [])
            }
        }
        return calls
    }

    private static let kinds: Set<Substring> = ["extension", "class", "struct", "enum", "actor", "protocol"]

    /// The name of the type that a line declares or extends.
    private static func declaredType(_ line: Substring) -> Substring? {
        let words = line.split(separator: " ", maxSplits: 4)
        guard let index = words.firstIndex(where: kinds.contains), index + 1 < words.count, line.hasSuffix("{") else {
            return nil
        }
        let name = words[index + 1].prefix { $0.isLetter || $0 == "." }
        return name.split(separator: ".").last
    }

    /// The name of the public function or initializer that a line declares, and the line from its parameters on.
    private static func declaredCall(_ line: Substring) -> (name: Substring, parameters: Substring)? {
        guard let modifier = line.range(of: "public "),
            let keyword = line.range(of: "func ") ?? line.range(of: "init")
        else { return nil }
        let start = line[keyword] == "func " ? keyword.upperBound : keyword.lowerBound
        let before = line[modifier.upperBound..<start]
        guard before.allSatisfy({ $0.isLetter || $0 == " " }) else { return nil }
        let name = line[start...].prefix { $0.isLetter }
        let next = line[name.endIndex...].first
        return name.isEmpty || next != "(" && next != "<" ? nil : (name, line[name.endIndex...])
    }

    /// The labels of the parameters, each with its colon, and what follows the parameters.
    private static func labels(_ signature: String) -> (labels: String, effects: String) {
        var (depth, generics, label, result, isLabel) = (0, 0, "", "", false)
        let text = signature.replacing("->", with: "")
        for (index, character) in zip(text.indices, text) {
            switch character {
            case "<" where depth == 0: generics += 1
            case ">" where depth == 0: generics -= 1
            case _ where generics > 0: break
            case "(", "[":
                depth += 1
                if depth == 1 { isLabel = true }
            case ")", "]":
                depth -= 1
                if depth == 0 { return (result, String(text[text.index(after: index)...].drop { $0 == " " })) }
            case ",": if depth == 1 { (label, isLabel) = ("", true) }
            case ":" where depth == 1 && isLabel, " " where depth == 1 && isLabel && !label.isEmpty:
                result += label + ":"
                (label, isLabel) = ("", false)
            case " ": break
            default: if depth == 1, isLabel { label.append(character) }
            }
        }
        return (result, "")
    }
}
