// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Testing

@testable import RunLoopCore

@Suite struct SpinPredictorTests {
    private static let short = Duration.microseconds(40)
    private static let long = Duration.milliseconds(3)

    private func predictor(after gaps: [Duration]) -> SpinPredictor {
        var predictor = SpinPredictor()
        for gap in gaps { predictor.didWait(gap, .none) }
        return predictor
    }

    @Test("it takes four short gaps in a row to expect a short wait")
    func fourShortGaps() {
        #expect(!SpinPredictor().expectsShortWait)
        #expect(!predictor(after: [Self.short, Self.short, Self.short]).expectsShortWait)
        #expect(predictor(after: [Self.short, Self.short, Self.short, Self.short]).expectsShortWait)
        #expect(!predictor(after: [Self.short, Self.short, Self.short, Self.long, Self.short]).expectsShortWait)
    }

    @Test("one long gap ends the expectation")
    func longGap() {
        #expect(!predictor(after: Array(repeating: Self.short, count: 100) + [Self.long]).expectsShortWait)
    }

    @Test("each spin that does not pay doubles what it takes, each that pays halves it")
    func backOff() {
        var predictor = predictor(after: [Self.short, Self.short, Self.short, Self.short])
        var needed = 4
        while needed < 1024 {
            predictor.didWait(Self.long, .failed)
            needed *= 2
            for _ in 0..<needed {
                #expect(!predictor.expectsShortWait)
                predictor.didWait(Self.short, .none)
            }
            #expect(predictor.expectsShortWait)
        }
        for _ in 0..<8 {
            predictor.didWait(.microseconds(1), .paid)
            #expect(predictor.expectsShortWait)
        }
        predictor.didWait(Self.long, .failed)
        for _ in 0..<8 { predictor.didWait(Self.short, .none) }
        #expect(predictor.expectsShortWait, "four doubled is eight: the rest was forgiven")
    }

    // MARK: Yields

    private static let now = MonotonicInstant(nanoseconds: 1_000_000_000)
    private static let gap = Tuning.timeBetweenCalls

    private func predictor(yielding yields: [SpinPredictor.Yield]) -> SpinPredictor {
        var predictor = SpinPredictor()
        for yield in yields { predictor.didYield(yield, until: Self.now) }
        return predictor
    }

    @Test("a spin first yields after as long as a round trip between two processors takes")
    func firstYield() {
        #expect(predictor(yielding: []).firstYield(at: Self.now) == Self.gap)
        #expect(predictor(yielding: [.none, .wasted]).firstYield(at: Self.now) == Self.gap)
    }

    @Test("an answer during a yield came from this processor: the next spin yields at once, until that finds nothing")
    func yieldAtOnce() {
        #expect(predictor(yielding: [.paid]).firstYield(at: Self.now) == .zero)
        #expect(predictor(yielding: [.paid, .none]).firstYield(at: Self.now) == .zero)
        #expect(predictor(yielding: [.paid, .wasted]).firstYield(at: Self.now) == Self.gap)
    }

    @Test("after a yield that another thread made long there is none for 256 times as long")
    func rest() {
        let predictor = predictor(yielding: [.paid, .lost(.milliseconds(3))])
        #expect(predictor.firstYield(at: Self.now) == nil)
        #expect(predictor.firstYield(at: Self.now.advanced(by: .milliseconds(767))) == nil)
        #expect(predictor.firstYield(at: Self.now.advanced(by: .milliseconds(768))) == Self.gap)
    }

    @Test("a yield that took longer than an answer is lost, also when something had come meanwhile")
    func lostYield() {
        #expect(SpinPredictor.Yield(lasting: .microseconds(100), hasPaid: true) == .paid)
        #expect(SpinPredictor.Yield(lasting: .microseconds(100), hasPaid: false) == .wasted)
        #expect(SpinPredictor.Yield(lasting: .microseconds(101), hasPaid: true) == .lost(.microseconds(101)))
    }
}
