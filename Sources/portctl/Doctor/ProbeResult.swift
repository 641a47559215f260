// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The result of a probe of `portctl doctor`.
struct ProbeResult: Equatable {
    enum State: String {
        case works
        /// The system does not support it, or forbids it.
        case refused
        /// It is available, but less of it than programs may need.
        case low
        /// For information only.
        case fact
    }

    /// What was tried.
    let subject: String
    let state: State
    /// The result: a number, or the system's error.
    let found: String
    /// What programs do without it, and the remedy; nil where nothing is missing.
    var cost: String?
    var remedy: String?

    static let columns: [Table.Column] = [
        .init(title: "WHAT"), .init(title: "STATE"), .init(title: "FOUND", narrowest: 20),
    ]

    var cells: [String] { [subject, state == .fact ? "" : state.rawValue, found] }

    /// The advice that the table has no room for, as a paragraph; nil where nothing is missing.
    var advice: String? {
        cost.map { "\(subject): \($0)\(remedy.map { " " + $0 } ?? "")" }
    }

    var style: Style {
        switch state {
        case .works, .fact: .plain
        case .low: .suspicious
        case .refused: .alarming
        }
    }

    var json: JSONValue {
        .object([
            ("what", .text(subject)), ("state", .text(state.rawValue)), ("found", .text(found)),
            ("cost", cost.map { .text($0) } ?? .null), ("remedy", remedy.map { .text($0) } ?? .null),
        ])
    }
}
