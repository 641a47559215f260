// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Testing

@testable import RunLoopCore

/// A loop that does what the test says, at times that it says, in milliseconds.
private final class ScriptedLoop {
    var state = StallState(threadID: 1, threshold: .milliseconds(100))
    private var depth = 0

    @discardableResult
    func at(_ time: Int64, _ kind: RunLoopTraceEvent.Kind, span: UInt64 = 0, mode: RunLoopMode = .default)
        -> Bool
    {
        if case .runBegin = kind { depth += 1 }
        defer { if case .runEnd = kind { depth -= 1 } }
        return state.note(
            RunLoopTraceEvent(
                time: date(time), threadID: 1, mode: mode, depth: depth, kind: kind,
                span: span))
    }

    @discardableResult
    func sleeps(at time: Int64) -> Bool { state.becomeIdle(at: date(time)) }

    @discardableResult
    func wakes(at time: Int64) -> Bool { at(time, .waitEnd(.wakeUp, slept: true)) }

    func begin(_ name: String, at time: Int64, span: UInt64) {
        at(time, .calloutBegin(RunLoopCallout(.block, name)), span: span)
    }

    func end(_ name: String, at time: Int64, span: UInt64) {
        at(time, .calloutEnd(RunLoopCallout(.block, name)), span: span)
    }

    func check(at time: Int64) -> (reports: [RunLoopStall], next: MonotonicInstant) {
        state.check(at: date(time))
    }
}

private func date(_ milliseconds: Int64) -> MonotonicInstant {
    MonotonicInstant(nanoseconds: milliseconds * 1_000_000)
}

private func run() -> RunLoopTraceEvent.Kind { .runBegin(until: .distantFuture) }

@Suite struct StallStateTests {
    @Test("S22: a slow handler is reported when the threshold has passed, and again when the loop is free")
    func slow() {
        let loop = ScriptedLoop()
        #expect(loop.at(0, run()), "the thread has to check: the loop is busy")
        loop.begin("quick", at: 1, span: 2)
        loop.end("quick", at: 2, span: 2)
        loop.begin("slow", at: 10, span: 3)
        #expect(loop.check(at: 0).next == date(100))
        #expect(loop.check(at: 99).reports.isEmpty)
        let (reports, next) = loop.check(at: 101)
        #expect(next == .distantFuture)
        #expect(reports.map(\.callout?.name) == ["slow"] && reports.map(\.isOver) == [false])
        #expect(reports.map(\.duration) == [.milliseconds(101)] && reports.map(\.calloutCount) == [2])
        #expect(reports.map(\.calloutDuration) == [.milliseconds(91)] && reports.map(\.since) == [date(0)])
        loop.end("slow", at: 510, span: 3)
        #expect(loop.check(at: 511).reports.isEmpty, "it is over when the loop sleeps")
        #expect(loop.sleeps(at: 512))
        let ends = loop.check(at: 513).reports
        #expect(ends.map(\.callout?.name) == ["slow"] && ends.map(\.isOver) == [true])
        #expect(ends.map(\.duration) == [.milliseconds(512)] && ends.map(\.calloutDuration) == [.milliseconds(500)])
        #expect(loop.check(at: 600).reports.isEmpty && loop.state.isIdle)
    }

    @Test("many quick handlers that leave the loop no rest are a stall")
    func many() {
        let loop = ScriptedLoop()
        loop.at(0, run())
        for number in 0..<11 {
            loop.begin("block \(number)", at: Int64(number) * 10, span: UInt64(number) + 1)
            if number < 10 { loop.end("block \(number)", at: Int64(number) * 10 + 9, span: UInt64(number) + 1) }
            // The loop polls for events, and finds one at once.
            loop.at(Int64(number) * 10 + 9, .waitEnd(.source, slept: false))
        }
        let reports = loop.check(at: 105).reports
        #expect(reports.map(\.callout?.name) == ["block 10"] && reports.map(\.calloutCount) == [11])
        #expect(reports.map(\.duration) == [.milliseconds(105)] && reports.map(\.calloutDuration) == [.milliseconds(5)])
    }

    @Test("a nested run that sleeps is no stall, one whose handler is slow is")
    func nested() {
        let loop = ScriptedLoop()
        loop.at(0, run())
        loop.begin("outer", at: 1, span: 1)
        loop.at(50, run(), mode: "inner")
        loop.sleeps(at: 60)
        #expect(loop.check(at: 100_000).reports.isEmpty)
        loop.wakes(at: 200_000)
        loop.at(200_001, .calloutBegin(RunLoopCallout(.timer, "inner")), span: 2, mode: "inner")
        let reports = loop.check(at: 200_101).reports
        #expect(reports.map(\.callout?.name) == ["inner"] && reports.map(\.mode) == ["inner"])
        #expect(reports.map(\.since) == [date(200_000)] && reports.map(\.calloutCount) == [2])
        loop.at(200_400, .calloutEnd(RunLoopCallout(.timer, "inner")), span: 2)
        loop.at(200_401, .runEnd(.finished))
        #expect(loop.check(at: 200_402).reports.isEmpty, "the outer handler goes on")
        loop.end("outer", at: 200_500, span: 1)
        loop.at(200_501, .runEnd(.finished))
        let ends = loop.check(at: 200_502).reports
        #expect(ends.map(\.callout?.name) == ["inner"] && ends.map(\.calloutDuration) == [.milliseconds(399)])
        #expect(ends.map(\.duration) == [.milliseconds(501)])
    }

    @Test("a handler that was slow before its nested run slept is the one that is reported")
    func nestedSleep() {
        let loop = ScriptedLoop()
        loop.at(0, run())
        loop.begin("outer", at: 0, span: 1)
        #expect(loop.check(at: 150).reports.map(\.callout?.name) == ["outer"])
        loop.at(150, run(), mode: "inner")
        loop.begin("inner", at: 151, span: 2)
        loop.end("inner", at: 171, span: 2)
        loop.sleeps(at: 180)
        let ends = loop.check(at: 181).reports
        #expect(ends.map(\.callout?.name) == ["outer"] && ends.map(\.calloutDuration) == [.milliseconds(160)])
    }

    @Test("the thread checks about once per threshold while the loop works, and not at all while it is idle")
    func checks() {
        let loop = ScriptedLoop()
        var rings = loop.at(0, run()) ? 1 : 0
        var (next, checks) = (loop.check(at: 0).next, 1)
        for time in stride(from: Int64(0), to: 1_000, by: 2) {
            if loop.sleeps(at: time) { rings += 1 }
            if next <= date(time) { (next, checks) = (loop.check(at: time).next, checks + 1) }
            if loop.wakes(at: time + 1) { rings += 1 }
        }
        #expect(rings == 1, "the thread is armed all the time")
        #expect((9...12).contains(checks), "\(checks) checks in ten thresholds")
        loop.sleeps(at: 1_000)
        while next != .distantFuture {
            (next, checks) = (loop.check(at: next.nanoseconds / 1_000_000).next, checks + 1)
        }
        #expect(checks <= 14 && loop.state.isIdle)
        #expect(loop.wakes(at: 50_000), "an idle loop that becomes busy rings")
    }

    @Test("ends whose begin was not seen change nothing")
    func middle() {
        let loop = ScriptedLoop()
        loop.end("unseen", at: 5, span: 77)
        #expect(loop.check(at: 500).reports.isEmpty)
        loop.begin("seen", at: 600, span: 78)
        loop.end("other", at: 601, span: 79)
        #expect(loop.check(at: 700).reports.map(\.callout?.name) == ["seen"])
    }

    @Test("a report is a sentence")
    func sentence() {
        let loop = ScriptedLoop()
        loop.at(0, run())
        #expect(
            loop.check(at: 100).reports.map(\.description) == [
                "The run loop of thread 1 has been busy for 100 ms, without a callout."
            ])
        loop.begin("save", at: 100, span: 1)
        loop.end("save", at: 140, span: 1)
        loop.sleeps(at: 150)
        #expect(
            loop.check(at: 150).reports.map(\.description) == [
                "The run loop of thread 1 was busy for 150 ms, 40 ms of it in block \"save\" in mode default, with 1 "
                    + "callout in all."
            ])
    }
}
