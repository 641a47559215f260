// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite(
    "CombinedSleep", .census, .enabled(if: SleepOnWords.isAllowed, "io_uring(7) is not there, or forbidden"))
struct CombinedSleepTests {
    /// What a sleep is on.
    private final class Bed {
        let bell: WakeDescriptor
        let rings: [RecordRing]
        var sleep: CombinedSleep

        init(rings count: Int = 1) throws {
            let made = try WakeDescriptor()
            rings = try (0..<count).map { _ in try SleepOnWords.makeRing() }
            sleep = try CombinedSleep(watching: made.raw)
            bell = made
            for ring in rings { ring.setReader(.dozing) }
        }

        func sleepNow(_ wanted: ArraySlice<RecordRing>) throws -> Bool {
            for ring in wanted { sleep.want(ring.word) }
            return try sleep.sleep(until: .distantPast)
        }
    }

    @Test("a word that another thread wakes ends a sleep", arguments: 0..<20)
    func woken(round: Int) throws {
        let bed = try Bed()
        let ring = bed.rings[0]
        let waker = runOnThread {
            let deadline = Watchdog.deadline
            while !ring.wakeReader() { if .now > deadline { return } else { yieldThread() } }
        }
        bed.sleep.want(ring.word)
        let isReadable = try bed.sleep.sleep(until: Watchdog.deadline)
        #expect(!isReadable)
        try waker.join()
    }

    @Test("a descriptor ends a sleep, each time that it is readable, and says so")
    func descriptor() throws {
        let bed = try Bed()
        for _ in 0..<3 {
            bed.bell.ring()
            bed.sleep.want(bed.rings[0].word)
            let isReadable = try bed.sleep.sleep(until: Watchdog.deadline)
            #expect(isReadable)
            // As long as it is.
            let isStill = try bed.sleep.sleep(until: Watchdog.deadline)
            #expect(isStill)
            bed.bell.silence()
            let isReadableYet = try bed.sleepNow(bed.rings[...])
            #expect(!isReadableYet)
        }
    }

    @Test("a deadline ends a sleep")
    func deadline() throws {
        let bed = try Bed()
        let deadline = MonotonicInstant.after(.milliseconds(5))
        while .now < deadline {
            bed.sleep.want(bed.rings[0].word)
            let isReadable = try bed.sleep.sleep(until: deadline)
            #expect(!isReadable)
        }
    }

    @Test(
        "on a word that does not have its value any more nobody sleeps",
        arguments: [RecordRing.ReaderState.awake, .asleep])
    func otherValue(state: RecordRing.ReaderState) throws {
        let bed = try Bed()
        bed.rings[0].setReader(state)
        bed.sleep.want(bed.rings[0].word)
        let isReadable = try bed.sleep.sleep(until: Watchdog.deadline)
        #expect(!isReadable)
    }

    @Test("what is wanted again is still slept on; what is not wanted any more, is not")
    func wanted() throws {
        let bed = try Bed(rings: CombinedSleep.wordLimit + 1)
        var isReadable = try bed.sleepNow(bed.rings[..<CombinedSleep.wordLimit])
        isReadable = try bed.sleepNow(bed.rings[..<4]) || isReadable
        // One is woken, and slept on anew.
        #expect(bed.rings[0].wakeReader())
        isReadable = try bed.sleepNow(bed.rings[..<4]) || isReadable
        isReadable = try bed.sleepNow(bed.rings[..<4]) || isReadable
        let isSlept = bed.rings.map { $0.wakeReader() }
        #expect(isSlept == bed.rings.indices.map { $0 < 4 })
        // More than the limit are left out. The first sleep is over at once: those four were woken before it.
        isReadable = try bed.sleepNow(bed.rings[...]) || isReadable
        isReadable = try bed.sleepNow(bed.rings[...]) || isReadable
        #expect(bed.rings.map { $0.wakeReader() } == bed.rings.indices.map { $0 < CombinedSleep.wordLimit })
        #expect(!isReadable)
    }

    @Test("memory that was given up while it was slept on harms nobody, also when other memory comes to lie there")
    func unmapped() throws {
        let bed = try Bed(rings: 0)
        for _ in 0..<100 {
            let ring = try SleepOnWords.makeRing()
            ring.setReader(.dozing)
            bed.sleep.want(ring.word)
            let isReadable = try bed.sleep.sleep(until: .distantPast)
            #expect(!isReadable && ring.wakeReader())
        }
    }

    #if DEBUG
    @Test("a system that refuses says why, and an interrupted sleep goes on to its end")
    func refused() throws {
        let bed = try Bed()
        bed.bell.ring()
        let (isReadable, hits) = try SystemCallFaults.with([.init(.io_uring_enter, .fail(EINTR), times: 3)]) {
            try bed.sleep.sleep(until: Watchdog.deadline)
        }
        #expect(isReadable && hits == 3)
        for code in [ENOSYS, EPERM] {
            #expect(throws: SystemError(code)) {
                try SystemCallFaults.with([.init(.io_uring_setup, .fail(code))]) {
                    _ = try CombinedSleep(watching: bed.bell.raw)
                }
            }
        }
    }
    #endif
}
