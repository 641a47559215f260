// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

// Which source of a port may call its handler. A move gives the turn to another source, with a higher number; that one
// begins when the last handler that an older one has begun is over. So a move never has two loops handle messages at
// once, and the order of the queue stays. The sources of one number share the turn: a port on two loops has its handler
// called on both.

/// Whose turn it is to call a port's handler: decides, does nothing else.
struct HandlerOwnership: Sendable {
    private(set) var current: UInt64 = 0
    private var last: UInt64 = 0
    /// Handlers under way that the current sources have begun, and older ones.
    private var underWay: Int32 = 0
    private var older: Int32 = 0

    /// Whether nothing but the end of older handlers keeps the current sources from beginning.
    var isAwaitingOlderHandlers: Bool { older > 0 }

    /// A number for a new source, higher than all before.
    mutating func makeNumber() -> UInt64 {
        last += 1
        return last
    }

    /// Gives the turn to the sources with this number, unless newer ones have it.
    mutating func give(to number: UInt64) {
        guard number > current else { return }
        current = number
        older += underWay
        underWay = 0
    }

    /// Whether a source with this number may begin to handle a message.
    func mayBegin(_ number: UInt64) -> Bool {
        number == current && older == 0
    }

    /// A handler begins; it may.
    mutating func begin() {
        underWay += 1
    }

    /// A handler is over.
    ///
    /// - Returns: whether newer sources may begin now.
    mutating func end(_ number: UInt64) -> Bool {
        guard number != current else {
            underWay -= 1
            return false
        }
        older -= 1
        return older == 0
    }
}

/// Who calls a port's handler, by which source. It takes a pointer's room.
enum HandlerBinding: Sendable {
    case nobody
    /// Loops. The source keeps the port; it ends when it is in no loop any more.
    case loops(RunLoopSource)
    /// The same, but it keeps the port, or what owns it, only while it is in a loop.
    case looseLoops(RunLoopSource)
    /// As before, but somebody else may have the source too: it stays when it is in no loop.
    case others(RunLoopSource)
    /// The source enqueues blocks that call the handler, and does not call that on its loop.
    case dispatcher(RunLoopSource)

    var source: RunLoopSource? {
        switch self {
        case .nobody: nil
        case .loops(let source), .looseLoops(let source), .others(let source), .dispatcher(let source): source
        }
    }

    var isDispatcher: Bool {
        if case .dispatcher = self { true } else { false }
    }
}
