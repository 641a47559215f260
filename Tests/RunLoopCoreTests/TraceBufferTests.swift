// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Testing

@testable import RunLoopCore

@Suite struct TraceBufferTests {
    @Test("the newest events win, and the count includes the rest")
    func overwriting() {
        var buffer = TraceBuffer(capacity: 3)
        buffer.append(event(0, .activity(.entry)))
        #expect(buffer.count == 0, "a buffer that is not open records nothing")
        buffer.open(at: .distantPast)
        for number in 1...5 { buffer.append(event(UInt64(number), .activity(.entry))) }
        #expect(buffer.firstPosition == 2 && buffer.count == 5)
        let (events, first) = buffer.copy(from: 0, limit: 100)
        #expect(first == 2 && events.map(\.span) == [3, 4, 5])
        #expect(buffer.copy(from: 3, limit: 1).events.map(\.span) == [4])
        #expect(buffer.copy(from: 5, limit: 1).events.isEmpty)
    }

    @Test("a buffer forgets cuts before its oldest event")
    func cuts() {
        var buffer = TraceBuffer(capacity: 2)
        for round in 0..<50 {
            buffer.open(at: .distantPast)
            buffer.append(event(UInt64(round), .activity(.entry)))
            buffer.close(at: MonotonicInstant(nanoseconds: Int64(round)))
            buffer.close(at: .distantFuture)
        }
        #expect(buffer.cuts.map(\.position) == [49, 50])
        #expect(buffer.cuts.map(\.time.nanoseconds) == [48, 49])
    }

    @Test("an event from before the buffer was opened again is left out")
    func reopening() {
        var buffer = TraceBuffer(capacity: 8)
        buffer.open(at: MonotonicInstant(nanoseconds: 1))
        buffer.append(event(5, .activity(.entry)))
        buffer.close(at: MonotonicInstant(nanoseconds: 10))
        buffer.open(at: MonotonicInstant(nanoseconds: 9))
        buffer.append(event(8, .activity(.exit)))
        buffer.append(event(10, .activity(.exit)))
        #expect(buffer.copy(from: 0, limit: 9).events.map(\.span) == [5, 10])
    }

    @Test("ends without a begin are left out, begins without an end get one")
    func halves() {
        let run = event(1, .runBegin(until: .distantFuture))
        let callout = event(3, .calloutBegin(RunLoopCallout(.block, "b")))
        let events = [event(7, .calloutEnd(RunLoopCallout(.timer, "t"))), run, callout]
        let balanced = TraceBalance.balanced(
            events, from: 0, cuts: [], endingAt: MonotonicInstant(nanoseconds: 99))
        #expect(
            balanced.map(\.kind) == [
                run.kind, callout.kind, .calloutEnd(RunLoopCallout(.block, "b")), .runEnd(nil),
            ])
        #expect(balanced.map(\.time.nanoseconds) == [1, 3, 99, 99])
    }

    @Test("a begin that lost its end closes where its enclosing span ends")
    func gap() {
        let events = [
            event(1, .runBegin(until: .distantFuture)), event(2, .waitBegin(until: .distantPast)),
            event(1, .runEnd(.finished)),
        ]
        let balanced = TraceBalance.balanced(events, from: 0, cuts: [], endingAt: .distantFuture)
        #expect(balanced.map(\.kind)[2...] == [.waitEnd(nil, slept: false), .runEnd(.finished)])
    }

    @Test("what is under way at a cut ends there, and its end after the cut is left out")
    func cut() {
        let callout = RunLoopCallout(.timer, nil)
        let events = [
            event(5, .calloutBegin(callout)), event(5, .calloutEnd(callout)), event(6, .calloutBegin(callout)),
            event(6, .calloutEnd(callout)),
        ]
        let cut = (position: 11, time: MonotonicInstant(nanoseconds: 5))
        let balanced = TraceBalance.balanced(events, from: 10, cuts: [cut], endingAt: .distantFuture)
        #expect(
            balanced.map(\.kind) == [
                .calloutBegin(callout), .calloutEnd(callout), .calloutBegin(callout), .calloutEnd(callout),
            ])
        #expect(balanced.map(\.span) == [5, 5, 6, 6])
    }

    @Test("traces write times with all their digits")
    func times() {
        #expect(RunLoopTraceEvent.seconds(MonotonicInstant(nanoseconds: 5_063_584_045_999)) == "5063.584045")
        #expect(RunLoopTraceEvent.seconds(MonotonicInstant(nanoseconds: 1_000)) == "0.000001")
        #expect(RunLoopTraceEvent.microseconds(12) == "0.012")
        #expect(RunLoopTraceEvent.microseconds(-1_500) == "-1.500")
    }

    private func event(_ span: UInt64, _ kind: RunLoopTraceEvent.Kind) -> RunLoopTraceEvent {
        RunLoopTraceEvent(
            time: MonotonicInstant(nanoseconds: Int64(span)), threadID: 1, mode: .default, depth: 1, kind: kind,
            span: span)
    }
}
