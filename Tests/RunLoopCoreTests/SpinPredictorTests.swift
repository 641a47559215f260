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

    @Test("a yield is lost when it took longer than an answer")
    func lostYield() {
        #expect(!SpinPredictor.isLost(.microseconds(100)))
        #expect(SpinPredictor.isLost(.microseconds(101)))
    }

    @Test(
        "after a yield that another thread made long there is none for 256 times as long; to a peer that is here, for 8",
        arguments: [(false, 768), (true, 24)])
    func rest(toPeer: Bool, milliseconds: Int) {
        let now = MonotonicInstant(nanoseconds: 1_000_000_000)
        let end = now.advanced(by: .milliseconds(milliseconds))
        var predictor = SpinPredictor()
        #expect(predictor.mayYield(toPeer: toPeer, at: now))
        predictor.didLose(.milliseconds(3), until: now)
        #expect(!predictor.mayYield(toPeer: toPeer, at: now))
        #expect(!predictor.mayYield(toPeer: toPeer, at: end.advanced(by: .milliseconds(-1))))
        #expect(predictor.mayYield(toPeer: toPeer, at: end))
    }
}
