// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The sources that are signalled for the same event: mostly one. Not generic: other modules then do not pay for
/// generic code.
package struct SourceList: Sendable {
    private var sources = SmallList<RunLoopSource>()

    package init() {}

    /// The source, when there is one and no other.
    package var only: RunLoopSource? { sources.only }

    package var all: [RunLoopSource] { Array(sources) }

    package var first: RunLoopSource? { sources.first }

    package mutating func append(_ source: RunLoopSource) {
        sources.append(source)
    }

    package mutating func remove(_ source: RunLoopSource) {
        sources.removeAll { $0 === source }
    }

    /// Signals each. Not with a lock held that guards the list.
    package func ring() {
        sources.forEach { $0.ring() }
    }
}
