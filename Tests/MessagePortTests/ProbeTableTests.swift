// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Testing

@Suite("the probes that a process knows") struct ProbeTableTests {
    private static let now = MonotonicInstant(nanoseconds: 1_000_000_000)

    private func number(_ time: UInt64) -> WaitNumber { WaitNumber(time: time, secret: 7) }
    private func probe(_ time: UInt64, _ round: Int32 = 0) -> WaitProbe { WaitProbe(start: number(time), round: round) }
    private func request(_ token: UInt64) -> RequestToken { RequestToken(connection: 1, token: token) }
    private func token(_ token: UInt64) -> RequestToken { RequestToken(connection: 9, token: token) }
    private func remote(_ time: UInt64) -> WaitKey { WaitKey(number: number(time), token: token(time)) }
    private func local(_ time: UInt64) -> WaitKey { WaitKey(number: number(time), token: nil) }

    private func tokens(_ step: ProbeTable<Int>.Step) -> Set<RequestToken>? {
        if case .passOn(let tokens) = step { tokens } else { nil }
    }

    private func done(_ step: ProbeTable<Int>.Step) -> ProbeTable<Int>.Entry? {
        if case .done(let entry) = step { entry } else { nil }
    }

    @Test("a probe that starts at a wait for another process asks that, and is done with its answer")
    func start() {
        var table = ProbeTable<Int>()
        let step = table.enter(probe(5), from: 0, along: nil, reaching: [remote(5)], at: Self.now)
        #expect(tokens(step) == [token(5)])
        #expect(table.answer(probe(5), about: token(6), hasReturned: true) == nil)
        #expect(table.answer(probe(5, 1), about: token(5), hasReturned: true) == nil)
        let entry = table.answer(probe(5), about: token(5), hasReturned: true)
        #expect(entry?.hasReturned == true && entry?.reached == [remote(5)])
        #expect(table.answer(probe(5), about: token(5), hasReturned: true) == nil, "once")
    }

    @Test("a probe that only threads of this process serve is done at once, and has returned if its own wait is there")
    func closed() {
        var table = ProbeTable<Int>()
        let step = table.enter(probe(5), from: 0, along: nil, reaching: [local(5), local(3)], at: Self.now)
        #expect(done(step)?.hasReturned == true)
        let other = table.enter(probe(6), from: 0, along: request(1), reaching: [local(3)], at: Self.now)
        #expect(done(other)?.hasReturned == false)
    }

    @Test("all answers are awaited, and one of them suffices for the return")
    func several() {
        var table = ProbeTable<Int>()
        let step = table.enter(
            probe(9), from: 3, along: request(1), reaching: [remote(1), remote(2), local(3)], at: Self.now)
        #expect(tokens(step) == [token(1), token(2)])
        #expect(table.answer(probe(9), about: token(2), hasReturned: true) == nil)
        let entry = table.answer(probe(9), about: token(1), hasReturned: false)
        #expect(entry?.hasReturned == true && entry?.source == 3)
    }

    @Test("a wait is passed through once for each probe; what reaches it again is answered at once")
    func once() {
        var table = ProbeTable<Int>()
        #expect(
            tokens(table.enter(probe(9), from: 1, along: request(1), reaching: [remote(1)], at: Self.now)) == [token(1)]
        )
        let again = table.enter(probe(9), from: 2, along: request(1), reaching: [remote(1)], at: Self.now)
        #expect(done(again)?.hasReturned == false)
        #expect(
            tokens(table.enter(probe(9, 1), from: 1, along: request(1), reaching: [remote(1)], at: Self.now)) == [
                token(1)
            ])
        #expect(table.count == 3)
    }

    @Test("of the probes about one request the newest few are remembered; those about others have no part in it")
    func bounded() {
        var table = ProbeTable<Int>()
        let limit = UInt64(Tuning.probesPerRequest)
        for time in 1...(3 * limit) {
            let step = table.enter(probe(time), from: 0, along: request(1), reaching: [remote(0)], at: Self.now)
            #expect(tokens(step) == [token(0)], "also when others were forgotten for it")
        }
        #expect(table.count == Tuning.probesPerRequest)
        #expect(table.answer(probe(2 * limit), about: token(0), hasReturned: false) == nil)
        let oldest = table.answer(probe(2 * limit + 1), about: token(0), hasReturned: false)
        #expect(oldest?.request == request(1))
        for thread in 2...(20 * limit) {
            let step = table.enter(probe(9999), from: 0, along: request(thread), reaching: [local(0)], at: Self.now)
            #expect(done(step) != nil)
        }
        let newest = table.answer(probe(3 * limit), about: token(0), hasReturned: true)
        #expect(newest?.hasReturned == true)
    }

    @Test("what is old is removed, at most once in a while, and as long as there is any")
    func removed() {
        var table = ProbeTable<Int>()
        #expect(table.removeOld(Self.now) == nil)
        _ = table.enter(probe(8), from: 0, along: request(1), reaching: [remote(1)], at: Self.now)
        let next = Self.now.advanced(by: Tuning.probeLifetime)
        #expect(table.removeOld(Self.now) == next)
        #expect(table.removeOld(Self.now) == nil)
        let later = Self.now.advanced(by: .nanoseconds(1))
        _ = table.enter(probe(9), from: 0, along: request(1), reaching: [remote(1)], at: later)
        #expect(table.removeOld(later) == nil)
        #expect(table.count == 2)
        let last = next.advanced(by: Tuning.probeLifetime)
        #expect(table.removeOld(next) == last)
        #expect(table.count == 1)
        #expect(table.answer(probe(8), about: token(1), hasReturned: true) == nil)
        for time in 1...UInt64(Tuning.probesPerRequest) {
            _ = table.enter(probe(20 + time), from: 0, along: request(1), reaching: [local(1)], at: next)
        }
        #expect(table.count == Tuning.probesPerRequest)
        #expect(table.removeOld(last) == nil)
        #expect(table.count == 0)
        #expect(done(table.enter(probe(8), from: 0, along: nil, reaching: [local(1)], at: last)) != nil)
        #expect(table.removeOld(last) == last.advanced(by: Tuning.probeLifetime))
    }

    @Test("of the packets about one request the newest few wait to be handled; those about others have no part in it")
    func backlog() {
        var backlog = ProbeBacklog()
        let limit = UInt64(Tuning.probesPerRequest)
        func packet(_ token: UInt64, _ time: UInt64) -> ProbeBacklog.Packet {
            ProbeBacklog.Packet(token: token, probe: probe(time), hasReturned: nil)
        }
        for time in 1...(3 * limit) { #expect(backlog.add(packet(1, time), isHere: true) == (time == 1)) }
        for thread in 2...(20 * limit) {
            let isFirst = backlog.add(packet(thread, 1), isHere: true)
            #expect(!isFirst)
        }
        // All that have not come count as one.
        for token in (100 * limit)...(200 * limit) { _ = backlog.add(packet(token, 1), isHere: false) }
        let taken = Dictionary(grouping: backlog.removeAll(), by: \.token)
        #expect(taken[1] == (2 * limit + 1...(3 * limit)).map { packet(1, $0) })
        #expect(taken[2] == [packet(2, 1)])
        #expect(taken.count == 20 * Int(limit) + Tuning.probesPerRequest)
        #expect(taken[200 * limit] == [packet(200 * limit, 1)])
        let rest = backlog.removeAll()
        #expect(rest.isEmpty)
        #expect(backlog.add(packet(1, 1), isHere: true) == true)
    }

    @Test("a wait starts a probe after 100 ms, and then after twice the time each: six within 10 s")
    func dates() {
        var dates = ProbeSchedule(from: Self.now)
        var clock = Self.now
        var seen: [Duration] = []
        let end = Self.now.advanced(by: .seconds(10))
        while dates.next <= end {
            clock = dates.next
            seen.append(Self.now.duration(to: clock))
            dates.begin()
        }
        #expect(seen == [100, 300, 700, 1_500, 3_100, 6_300].map { .milliseconds($0) })
        #expect(dates.count == 6)
        for _ in 0..<100 { dates.begin() }
        #expect(dates.next > end)
        #expect(ProbeSchedule(from: .distantFuture).next == .distantFuture)
    }
}
