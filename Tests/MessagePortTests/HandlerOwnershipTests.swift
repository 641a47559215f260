// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("HandlerOwnership") struct HandlerOwnershipTests {
    @Test("sources of one generation share the ownership")
    func shared() {
        let ownership = Ownership()
        #expect(ownership.begins(0))
        #expect(ownership.begins(0))
        #expect(!ownership.isAwaitingOlderHandlers)
        let isOver = ownership.end(0)
        #expect(!isOver)
    }

    @Test("a newer source begins when the last handler of the older ones has returned")
    func given() {
        let ownership = Ownership()
        #expect(ownership.begins(0))
        #expect(ownership.begins(0))
        let next = ownership.makeNumber()
        ownership.give(to: next)
        #expect(!ownership.begins(0))
        #expect(!ownership.begins(next))
        #expect(ownership.isAwaitingOlderHandlers)
        let ends = [ownership.end(0), ownership.end(0)]
        #expect(ends == [false, true])
        #expect(ownership.begins(next))
        #expect(!ownership.begins(0))
    }

    @Test("of two sources that are given the ownership the newer has it, in whichever order", arguments: [false, true])
    func newest(isReversed: Bool) {
        let ownership = Ownership()
        let numbers = [ownership.makeNumber(), ownership.makeNumber()]
        for number in isReversed ? numbers.reversed() : numbers { ownership.give(to: number) }
        #expect(!ownership.begins(numbers[0]))
        #expect(ownership.begins(numbers[1]))
    }

    @Test("handlers of several moves are all waited for")
    func severalMoves() {
        let ownership = Ownership()
        #expect(ownership.begins(0))
        let first = ownership.makeNumber()
        ownership.give(to: first)
        let second = ownership.makeNumber()
        ownership.give(to: second)
        #expect(!ownership.begins(second))
        let isOver = ownership.end(0)
        #expect(isOver)
        #expect(ownership.begins(second))
    }
}

/// An ownership in a box, so that expectations can change it.
private final class Ownership {
    private var state = HandlerOwnership()

    var isAwaitingOlderHandlers: Bool { state.isAwaitingOlderHandlers }

    func makeNumber() -> UInt64 { state.makeNumber() }
    func give(to number: UInt64) { state.give(to: number) }
    func end(_ number: UInt64) -> Bool { state.end(handler(number)) }

    /// Begins a handler, if a source with this number may.
    func begins(_ number: UInt64) -> Bool {
        guard state.mayBegin(number) else { return false }
        state.begin(handler(number))
        return true
    }

    private func handler(_ number: UInt64) -> ActiveHandlers.Handler { .init(loop: .main, generation: number) }
}
