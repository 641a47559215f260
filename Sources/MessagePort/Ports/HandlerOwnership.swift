// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

// Which source of a port may call its handler. A move gives the ownership to another source, of a higher generation,
// which begins when the last handler that an older generation began has returned. So a move never has two loops handle
// messages at once, and the order of the queue stays. Sources of one generation share the ownership: a port on two
// loops has its handler called on both.

/// Which generation of sources may call a port's handler: decides, does nothing else.
struct HandlerOwnership: Sendable {
    private(set) var current: UInt64 = 0
    private var last: UInt64 = 0
    /// Handlers under way that sources of the current generation, and of older ones, began.
    private var underWay: Int32 = 0
    private var older: Int32 = 0

    /// Whether the sources of the current generation wait only for older handlers to return.
    var isAwaitingOlderHandlers: Bool { older > 0 }

    /// A generation for a new source, higher than all before.
    mutating func makeNumber() -> UInt64 {
        last += 1
        return last
    }

    /// Gives the ownership to the sources of this generation, unless a newer one has it.
    mutating func give(to number: UInt64) {
        guard number > current else { return }
        current = number
        older += underWay
        underWay = 0
    }

    /// Whether a source of this generation may begin to handle a message.
    func mayBegin(_ number: UInt64) -> Bool {
        number == current && older == 0
    }

    /// Begins a handler, which `mayBegin` allowed.
    mutating func begin() {
        underWay += 1
    }

    /// Ends a handler.
    ///
    /// - Returns: whether sources of a newer generation may begin now.
    mutating func end(_ number: UInt64) -> Bool {
        guard number != current else {
            underWay -= 1
            return false
        }
        older -= 1
        return older == 0
    }
}

/// What calls a port's handler, through which source. It is as large as a pointer.
enum HandlerBinding: Sendable {
    case nobody
    /// Loops. The source retains the port; it ends when it is in no loop any more.
    case owning(RunLoopSource)
    /// Loops, but the source retains the port, or its owner, only while it is in a loop.
    case unowned(RunLoopSource)
    /// As `unowned`, but other code may have the source too: it stays when it is in no loop.
    case shared(RunLoopSource)
    /// The source enqueues blocks that call the handler, and never calls it on its loop.
    case dispatcher(RunLoopSource)

    var source: RunLoopSource? {
        switch self {
        case .nobody: nil
        case .owning(let source), .unowned(let source), .shared(let source), .dispatcher(let source): source
        }
    }

    var isDispatcher: Bool {
        if case .dispatcher = self { true } else { false }
    }
}
