// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Testing

@Suite("MonotonicInstant") struct MonotonicInstantTests {
    @Test("the clock never goes back")
    func order() {
        let moments = (0..<1000).map { _ in MonotonicInstant.now }
        #expect(moments == moments.sorted())
    }

    @Test("adding gives a moment ahead, and subtracting gives the same time back")
    func arithmetic() {
        let start = MonotonicInstant(nanoseconds: 1_000)
        let later = start.advanced(by: .microseconds(2))
        #expect(later.nanoseconds == 3_000)
        #expect(start.duration(to: later) == .microseconds(2))
        #expect(later.duration(to: start) == .microseconds(-2))
        #expect(start < later)
    }

    @Test("sums beyond the ends stay at the ends")
    func saturatingSums() {
        let start = MonotonicInstant(nanoseconds: 1)
        #expect(start.advanced(by: .seconds(Int64.max)) == .distantFuture)
        #expect(MonotonicInstant(nanoseconds: -2).advanced(by: .seconds(Int64.min)) == .distantPast)
        #expect(MonotonicInstant(nanoseconds: .max - 1).advanced(by: .nanoseconds(1)) == .distantFuture)
    }

    @Test("the ends stay where they are, whatever is added", arguments: [Duration.seconds(-1), .zero, .seconds(1)])
    func ends(duration: Duration) {
        #expect(MonotonicInstant.distantFuture.advanced(by: duration) == .distantFuture)
        #expect(MonotonicInstant.distantPast.advanced(by: duration) == .distantPast)
    }

    @Test("times between moments too far apart stay at the ends")
    func saturatingDifferences() {
        #expect(MonotonicInstant.distantPast.duration(to: .distantFuture) == .nanoseconds(Int64.max))
        #expect(MonotonicInstant.distantFuture.duration(to: .distantPast) == .nanoseconds(Int64.min))
    }

    @Test(
        "a duration is rounded up to whole nanoseconds, so that a wait never ends early",
        arguments: [
            (Duration(secondsComponent: 0, attosecondsComponent: 1), Int64(1)),
            (Duration(secondsComponent: 0, attosecondsComponent: -1), 0),
            (Duration(secondsComponent: 0, attosecondsComponent: 1_000_000_001), 2),
            (Duration(secondsComponent: 0, attosecondsComponent: -1_999_999_999), -1),
            // Durations that fit in a word of attoseconds, and that do not.
            (Duration(secondsComponent: 18, attosecondsComponent: 446_744_073_709_551_615), 18_446_744_074),
            (Duration(secondsComponent: 18, attosecondsComponent: 446_744_073_709_551_616), 18_446_744_074),
            (Duration(secondsComponent: 18, attosecondsComponent: 446_744_074_000_000_001), 18_446_744_075),
            (.seconds(100), 100_000_000_000),
            (.zero, 0), (.nanoseconds(7), 7), (.seconds(-3), -3_000_000_000),
            (.nanoseconds(Int64.max), .max), (.nanoseconds(Int64.min), .min),
        ] as [(Duration, Int64)])
    func rounding(duration: Duration, nanoseconds: Int64) {
        #expect(duration.nanoseconds == nanoseconds)
    }

    @Test(
        "durations beyond 292 years stay at the ends",
        arguments: [
            (Duration.seconds(Int64.max), Int64.max), (Duration.seconds(Int64.min), Int64.min),
            (Duration.nanoseconds(Int64.max) + Duration.nanoseconds(1), Int64.max),
            (Duration.nanoseconds(Int64.min) - Duration.nanoseconds(1), Int64.min),
        ] as [(Duration, Int64)])
    func saturatingDuration(duration: Duration, nanoseconds: Int64) {
        #expect(duration.nanoseconds == nanoseconds)
    }
}
