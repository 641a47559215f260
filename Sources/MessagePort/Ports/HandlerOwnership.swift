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
    /// The handlers under way: the generations of their sources, and their loops.
    private(set) var handlers = ActiveHandlers.none

    /// Whether the sources of the current generation wait only for older handlers to return.
    var isAwaitingOlderHandlers: Bool { !handlers.areAll(of: current) }

    /// A generation for a new source, higher than all before.
    mutating func makeNumber() -> UInt64 {
        last += 1
        return last
    }

    /// Gives the ownership to the sources of this generation, unless a newer one has it.
    mutating func give(to number: UInt64) {
        current = max(current, number)
    }

    /// Whether a source of this generation may begin to handle a message.
    func mayBegin(_ number: UInt64) -> Bool {
        number == current && !isAwaitingOlderHandlers
    }

    /// Begins a handler, which `mayBegin` allowed.
    mutating func begin(_ handler: ActiveHandlers.Handler) {
        handlers.append(handler)
    }

    /// Ends a handler.
    ///
    /// - Returns: whether sources of a newer generation may begin now.
    mutating func end(_ handler: ActiveHandlers.Handler) -> Bool {
        handlers.remove(handler)
        return handler.generation != current && !isAwaitingOlderHandlers
    }
}

/// A port's handlers under way: mostly none or one, which is stored inline. Not generic, so that no generic code of
/// another module is called for each message.
enum ActiveHandlers: Sendable {
    /// A handler, identified by its loop and the generation of its source.
    @safe struct Handler: Sendable {
        // SAFETY: the handler runs on the loop's thread, which retains the loop, and is removed from here before it
        // returns. A lookup happens under the port's lock, and retains the loop before that is unlocked. Counting
        // references would cost as much for each message as queueing it.
        unowned(unsafe) let loop: ThreadRunLoop
        let generation: UInt64
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

    /// Whether sources of this generation began all of them.
    func areAll(of generation: UInt64) -> Bool {
        switch self {
        case .none: true
        case .one(let handler): handler.generation == generation
        case .many(let handlers): handlers.allSatisfy { $0.generation == generation }
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

    /// Removes the last one of this generation on this loop.
    mutating func remove(_ handler: Handler) {
        func isWanted(_ other: Handler) -> Bool {
            unsafe other.generation == handler.generation && other.loop === handler.loop
        }
        switch self {
        case .none: break
        case .one(let only):
            if isWanted(only) { self = .none }
        case .many(var handlers):
            guard let index = handlers.lastIndex(where: isWanted) else { return }
            handlers.remove(at: index)
            // A lease is possible again when one is left.
            self = handlers.count == 1 ? .one(handlers[0]) : .many(handlers)
        }
    }
}
