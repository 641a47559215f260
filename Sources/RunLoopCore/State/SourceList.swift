// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The sources that are rung for the same thing: mostly one. Not generic, so that other modules do not pay for generic
/// code, and that it takes a pointer's room: in a generic one it is not known that pointers have room for the case.
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

    /// Calls `body` for each. Takes no memory.
    func forEach(_ body: (RunLoopSource) -> Void) {
        switch sources {
        case .none: break
        case .one(let source): body(source)
        case .many(let sources): for source in sources { body(source) }
        }
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
