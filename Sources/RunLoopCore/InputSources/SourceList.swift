// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The sources that are rung for the same thing: mostly one. Not generic, so that other modules do not pay for generic code.
package struct SourceList: Sendable {
    private var sources: ShortList<RunLoopSource> = []

    /// No source.
    package init() {}

    /// All of them.
    package var all: [RunLoopSource] { Array(sources) }

    package var first: RunLoopSource? { sources.first }

    package mutating func append(_ source: RunLoopSource) {
        sources.append(source)
    }

    package mutating func remove(_ source: RunLoopSource) {
        sources.removeAll { $0 === source }
    }

    /// Rings each. Not with a lock held that guards the list.
    package func ring() {
        switch sources {
        case .none: break
        case .one(let source): source.ring()
        case .many(let sources): for source in sources { source.ring() }
        }
    }
}
