// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Names that come and go: values") struct NameSnapshotTests {
    private func entry(_ name: String, _ owner: Int32 = 1, since: Int64 = 0, _ path: String = "/s") -> NameEntry {
        NameEntry(
            registration: .init(
                name: name, owner: owner, since: MonotonicInstant(nanoseconds: since), ownerStart: nil),
            socketPath: path)
    }

    @Test("each change is reported once, however often it is seen")
    func once() {
        var table = NameSnapshot()
        let first = entry("a")
        #expect(table.note("a", nil) == [])
        #expect(table.note("a", first) == [.appeared(first.registration)])
        #expect(table.note("a", first) == [])
        #expect(table.note("a", nil) == [.went(first.registration)])
        #expect(table.note("a", nil) == [])
    }

    @Test("another owner, time or port under the name is a disappearance and an appearance, in this order")
    func handover() {
        var table = NameSnapshot()
        var before = entry("a")
        _ = table.note("a", before)
        for now in [entry("a", 2), entry("a", 2, since: 5), entry("a", 2, since: 5, "/t")] {
            #expect(table.note("a", now) == [.went(before.registration), .appeared(now.registration)])
            before = now
        }
    }

    @Test("reading everything reports the differences: all that went, then all that came, each by name")
    func all() {
        var table = NameSnapshot()
        let (a, b, c, d, otherB) = (entry("a"), entry("b"), entry("c"), entry("d"), entry("b", 7))
        #expect(
            table.noteAll(["b": b, "a": a, "c": c])
                == [.appeared(a.registration), .appeared(b.registration), .appeared(c.registration)])
        #expect(table.noteAll(["b": b, "a": a, "c": c]) == [])
        #expect(
            table.noteAll(["d": d, "b": otherB, "a": a])
                == [
                    .went(b.registration), .went(c.registration), .appeared(otherB.registration),
                    .appeared(d.registration),
                ])
        #expect(table.owners == [1, 7])
        #expect(table.files(of: 7) == ["b"])
        #expect(table.noteAll([:]).count == 3)
    }

    @Test("random readings: the reported changes always add up to the present names", .seeded)
    func random() {
        var generator = Seed.generator()
        for _ in 0..<200 {
            var (table, reported) = (NameSnapshot(), [String: NameEvent]())
            for _ in 0..<40 {
                let files = ["a", "b", "c", "d"].filter { _ in Bool.random(using: &generator) }
                let now = Dictionary(
                    uniqueKeysWithValues: files.map { ($0, entry($0, Int32.random(in: 1...2, using: &generator))) })
                let file = ["a", "b", "c", "d"][Int.random(in: 0..<4, using: &generator)]
                let isAll = Bool.random(using: &generator)
                for event in isAll ? table.noteAll(now) : table.note(file, now[file]) {
                    switch (reported[event.registration.name], event) {
                    case (nil, .appeared), (.went, .appeared): break
                    case (.appeared(let last), .went(let gone)): #expect(last == gone)
                    default: Issue.record("\(event) was reported twice")
                    }
                    reported[event.registration.name] = event
                }
                let present = reported.values.compactMap { if case .appeared(let one) = $0 { one } else { nil } }
                #expect(Set(present) == Set(table.entries.values.map(\.registration)))
            }
        }
    }

    @Test(
        "a time prints as ISO 8601 says",
        arguments: [
            (0, "1970-01-01T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"), (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"), (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_271_830, "2026-11-21T14:37:10Z"), (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-2_203_891_200, "1900-03-01T00:00:00Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
            (-62_135_596_800, "0001-01-01T00:00:00Z"),
        ])
    func times(seconds: Int64, text: String) {
        #expect("\(UTCTime(secondsSince1970: seconds))" == text)
        #expect(UTCTime(secondsSince1970: seconds) < UTCTime(secondsSince1970: seconds + 1))
    }

    @Test("a name, its owner and its age print as one line")
    func registration() throws {
        let now = MonotonicInstant.now
        // In the middle of a second: the time is given to the second, and each time from another reading of the clocks.
        let wall = sysWallTime(before: { now.duration(to: .now) })
        let middle = wall - .seconds(wall.components.seconds) + .milliseconds(500)
        let old = PortNameServer.Registration(
            name: "org.example.greeter", owner: 4711, since: now.advanced(by: .seconds(-3600) - middle),
            ownerStart: .seconds(5))
        #expect(old.age >= .seconds(3600))
        #expect(old.description == "org.example.greeter: process 4711, since \(old.sinceTime)")
        #expect("\(NameEvent.went(old))" == "went: \(old)")
        let hourAgo = UTCTime(secondsSince1970: sysWallTime().components.seconds - 3600)
        #expect(abs(old.sinceTime.secondsSince1970 - hourAgo.secondsSince1970) <= 3600)
        let boot = try #require(old.ownerStartTime)
        #expect(boot < UTCTime(secondsSince1970: sysWallTime().components.seconds + 1))
    }
}
