// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

/// The handlers of a port that are under way: mostly none or one, which lies in place. Not generic, so that nothing
/// generic of another module is called for each message.
enum HandlersUnderWay: Sendable {
    /// A handler, known by the loop on which it runs and the number of its source.
    @safe struct Handler: Sendable {
        // SAFETY: the handler runs on the loop's thread, which keeps the loop, and is taken out of here before it
        // returns. Whoever looks it up does so under the port's lock, and retains it before that is free. To count
        // references for each message costs as much as its place in the queue.
        unowned(unsafe) let loop: ThreadRunLoop
        let turn: UInt64
    }

    case none
    case one(Handler)
    case many([Handler])

    var isOne: Bool {
        if case .one = self { true } else { false }
    }

    var all: [Handler] {
        switch self {
        case .none: []
        case .one(let handler): [handler]
        case .many(let handlers): handlers
        }
    }

    /// Whether no source with another number has begun any of them.
    func areAll(of turn: UInt64) -> Bool {
        switch self {
        case .none: true
        case .one(let handler): handler.turn == turn
        case .many(let handlers): handlers.allSatisfy { $0.turn == turn }
        }
    }

    mutating func append(_ handler: Handler) {
        switch self {
        case .none: self = .one(handler)
        case .one(let first): self = .many([first, handler])
        case .many(var handlers):
            self = .none  // so that the list is changed in place
            handlers.append(handler)
            self = .many(handlers)
        }
    }

    /// Takes out the last of those with this number on this loop.
    mutating func remove(_ handler: Handler) {
        func isWanted(_ other: Handler) -> Bool { unsafe other.turn == handler.turn && other.loop === handler.loop }
        switch self {
        case .none: break
        case .one(let only):
            if isWanted(only) { self = .none }
        case .many(var handlers):
            guard let index = handlers.lastIndex(where: isWanted) else { return }
            handlers.remove(at: index)
            // A claim may be made again when one is left.
            self = handlers.count == 1 ? .one(handlers[0]) : .many(handlers)
        }
    }
}
