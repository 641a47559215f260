// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The sources that are signalled for the same event: mostly one. Not generic: other modules then do not pay for
/// generic code, and the list has the size of a pointer, because the compiler knows that a pointer has spare bits for
/// the case.
package struct SourceList: Sendable {
    private enum Sources {
        case none
        case one(RunLoopSource)
        case many([RunLoopSource])
    }

    private var sources = Sources.none

    /// No source.
    package init() {}

    /// One source.
    init(_ source: RunLoopSource) { sources = .one(source) }

    var isEmpty: Bool { if case .none = sources { true } else { false } }

    /// The source, when there is one and no other.
    package var only: RunLoopSource? { if case .one(let source) = sources { source } else { nil } }

    /// All of them.
    package var all: [RunLoopSource] {
        switch sources {
        case .none: []
        case .one(let source): [source]
        case .many(let sources): sources
        }
    }

    package var first: RunLoopSource? {
        switch sources {
        case .none: nil
        case .one(let source): source
        case .many(let sources): sources.first
        }
    }

    package mutating func append(_ source: RunLoopSource) {
        set(all + [source])
    }

    package mutating func remove(_ source: RunLoopSource) {
        set(all.filter { $0 !== source })
    }

    private mutating func set(_ all: [RunLoopSource]) {
        sources =
            switch all.count {
            case 0: .none
            case 1: .one(all[0])
            default: .many(all)
            }
    }

    /// Calls `body` for each. Allocates nothing.
    func forEach(_ body: (RunLoopSource) -> Void) {
        switch sources {
        case .none: break
        case .one(let source): body(source)
        case .many(let sources): for source in sources { body(source) }
        }
    }

    /// Signals each. Not with a lock held that guards the list.
    package func ring() {
        switch sources {
        case .none: break
        case .one(let source): source.ring()
        case .many(let sources): for source in sources { source.ring() }
        }
    }
}
