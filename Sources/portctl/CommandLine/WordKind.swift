// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The kind of a word in a command line. Parsing checks words against it, completion offers words of it.
enum WordKind: Equatable {
    case portName
    case messageID
    case processID
    case data
    case file
    case directory
    case duration
    case size
    case count
    case shell
    case command

    /// Why a word is none of this kind; nil when it is one.
    func objection(to word: String) -> String? {
        switch self {
        case .data, .file, .command: nil
        case .portName:
            if word.isEmpty {
                "A name must not be empty."
            } else if word.utf8.count > PortName.limit {
                "A name has at most \(PortName.limit) bytes; this one has \(word.utf8.count)."
            } else {
                nil
            }
        case .directory:
            word.hasPrefix("/") ? nil : "\(word) is no absolute path; write it from / on."
        case .messageID:
            Int32(word) == nil ? "\(word) is no message id: a number from \(Int32.min) to \(Int32.max)." : nil
        case .processID:
            Int32(word).map { $0 > 0 } ?? false ? nil : "\(word) is no process id: a number from 1 on."
        case .duration:
            HumanDuration(word) == nil ? "\(word) is no duration: write 1.5s, 200ms, 2m, or a number of seconds." : nil
        case .size: HumanSize(word) == nil ? "\(word) is no size: write 512, 64K, 1.5M." : nil
        case .count: Int(word).map { $0 > 0 } ?? false ? nil : "\(word) is no count: a number from 1 on."
        case .shell:
            Shell(rawValue: word) == nil ? "\(word) is no shell that is known here: bash, zsh or fish." : nil
        }
    }
}

/// A shell whose completion can be written.
enum Shell: String, CaseIterable {
    case bash, zsh, fish
}
