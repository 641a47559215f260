// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// What a probe of `portctl doctor` has found.
struct Finding: Equatable {
    enum State: String {
        case works
        /// The system does not do it, or forbids it.
        case refused
        /// It is there, and there is less of it than programs may need.
        case low
        /// Only to be known.
        case fact
    }

    /// What was tried.
    let subject: String
    let state: State
    /// What was seen: a number, or the system's error.
    let found: String
    /// What programs do without it, and what helps; nil where nothing is missing.
    var cost: String?
    var remedy: String?

    static let columns: [Table.Column] = [
        .init(title: "WHAT"), .init(title: "STATE"), .init(title: "FOUND", narrowest: 20),
    ]

    var cells: [String] { [subject, state == .fact ? "" : state.rawValue, found] }

    /// What the table does not say, as a paragraph; nil where nothing is missing.
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
