// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("HandlerOwnership") struct HandlerOwnershipTests {
    @Test("sources of one generation share the ownership")
    func shared() {
        let turns = Turns()
        #expect(turns.begins(0))
        #expect(turns.begins(0))
        #expect(!turns.isHeldUp)
        let isOver = turns.end(0)
        #expect(!isOver)
    }

    @Test("a newer source begins when the last handler of the older ones has returned")
    func given() {
        let turns = Turns()
        #expect(turns.begins(0))
        #expect(turns.begins(0))
        let next = turns.makeNumber()
        turns.give(to: next)
        #expect(!turns.begins(0))
        #expect(!turns.begins(next))
        #expect(turns.isHeldUp)
        let ends = [turns.end(0), turns.end(0)]
        #expect(ends == [false, true])
        #expect(turns.begins(next))
        #expect(!turns.begins(0))
    }

    @Test("of two sources that are given the ownership the newer has it, in whichever order", arguments: [false, true])
    func newest(isReversed: Bool) {
        let turns = Turns()
        let numbers = [turns.makeNumber(), turns.makeNumber()]
        for number in isReversed ? numbers.reversed() : numbers { turns.give(to: number) }
        #expect(!turns.begins(numbers[0]))
        #expect(turns.begins(numbers[1]))
    }

    @Test("handlers of several moves are all waited for")
    func severalMoves() {
        let turns = Turns()
        #expect(turns.begins(0))
        let first = turns.makeNumber()
        turns.give(to: first)
        let second = turns.makeNumber()
        turns.give(to: second)
        #expect(!turns.begins(second))
        let isOver = turns.end(0)
        #expect(isOver)
        #expect(turns.begins(second))
    }
}

/// An ownership in a box, so that expectations can change it.
private final class Turns {
    private var state = HandlerOwnership()

    var isHeldUp: Bool { state.isHeldUp }

    func makeNumber() -> UInt64 { state.makeNumber() }
    func give(to number: UInt64) { state.give(to: number) }
    func end(_ number: UInt64) -> Bool { state.end(number) }

    /// Begins a handler, if a source with this number may.
    func begins(_ number: UInt64) -> Bool {
        guard state.mayBegin(number) else { return false }
        state.begin()
        return true
    }
}
