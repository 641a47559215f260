// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

#if PORT_FAULTS

/// The rules apply on the thread that begins a wait or a watch: the system calls are made there.
@Suite("Names where the kernel gives no directory watch", .leakCheck(warmingUp: makeSpareDescriptor))
struct NameIntervalTests {
    static let refusals: [(SystemCall, CInt)] = [
        (.inotify_init, EMFILE), (.inotify_init, EPERM), (.inotify_init, ENOSYS), (.inotify_add_watch, ENOSPC),
    ]

    @Test(
        "a wait throws watchLimit; with an interval it finds the name at one of its scans, which are counted",
        arguments: refusals)
    func wait(call: SystemCall, code: CInt) async throws {
        try await withFixture { fixture in
            let rule = SystemCallFaults.Rule(call, .fail(code), times: .max)
            let refused = SystemCallFaults.with([rule]) {
                failure { _ = try fixture.names.waitFor("late", within: longTimeout) }
            }.result
            #expect(refused?.code == .watchLimit)
            #expect(refused?.systemError == SystemError(code))
            fixture.names.lookInterval = .zero
            #expect(fixture.names.lookInterval == .milliseconds(1), "the shortest")
            let port = MachPort()
            let registrar = runOnThread {
                while fixture.names.intervalLookCount < 3 { yieldThread() }
                let before = fixture.names.intervalLookCount
                try fixture.names.register(port, name: "late")
                return before...fixture.names.intervalLookCount + 1
            }
            let right = try SystemCallFaults.with([rule]) { try fixture.names.waitFor("late", within: longTimeout) }
                .result
            #expect(!right.isDead)
            // The scan that was running when the name came notices it, or the first that began afterwards, or one
            // between.
            let count = fixture.names.intervalLookCount
            #expect(try registrar.join().contains(count), "\(count)")
            port.invalidate()
            let error = SystemCallFaults.with([rule]) {
                failure { _ = try fixture.names.waitFor("never", within: .milliseconds(3)) }
            }.result
            #expect(error?.code == .nameWaitTimedOut)
        }
    }

    @Test("a wait that is shorter than the interval scans at its end")
    func shortWait() async throws {
        try await withFixture { fixture in
            let rule = SystemCallFaults.Rule(.inotify_init, .fail(EPERM), times: .max)
            fixture.names.lookInterval = .seconds(3600)
            let port = MachPort()
            // Registered when the first scan has found nothing: before the only wait.
            let beforeWait = SystemCallFaults.Rule(
                .poll,
                .precede {
                    do { try onNewThread { try fixture.names.register(port, name: "late") } } catch {
                        Issue.record(error)
                    }
                })
            let (right, hits) = try SystemCallFaults.with([rule, beforeWait]) {
                try fixture.names.waitFor("late", within: .milliseconds(500))
            }
            #expect(hits == 2 && !right.isDead && fixture.names.intervalLookCount == 2)
            port.invalidate()
        }
    }

    @Test("a watch that the kernel gives up in mid-life goes on at the interval")
    func midLife() async throws {
        try await withFixture(leaving: .anything) { fixture in
            fixture.names.lookInterval = .milliseconds(2)
            let port = MachPort()
            try fixture.names.register(port, name: "a")
            let monitor = try fixture.names.monitor()
            #expect(try monitor.nextText()?.hasPrefix("+a ") == true)
            // The directory goes, and its watches with it.
            let rule = SystemCallFaults.Rule(.inotify_add_watch, .fail(ENOSPC), times: .max)
            #expect(rename(fixture.directory, fixture.scratch.path("away")) == 0)
            var texts: [String] = []
            let deadline = Watchdog.deadline
            _ = try SystemCallFaults.with([rule]) {
                while texts.isEmpty, .now < deadline { if let text = try monitor.nextText() { texts.append(text) } }
            }
            #expect(texts.first?.hasPrefix("-a ") == true)
            #expect(rename(fixture.scratch.path("away"), fixture.directory) == 0)
            while texts.count < 2, .now < deadline { if let text = try monitor.nextText() { texts.append(text) } }
            #expect(texts.last?.hasPrefix("+a ") == true)
            #expect(fixture.names.intervalLookCount >= 2)
            port.invalidate()
        }
    }

    @Test("a watch reports names that come and go, and those that go with their owner", arguments: refusals)
    func watch(call: SystemCall, code: CInt) async throws {
        try await withFixture(leaving: .anything) { fixture in
            fixture.names.lookInterval = .milliseconds(2)
            let (own, rule) = (sysProcessID(), SystemCallFaults.Rule(call, .fail(code), times: .max))
            let port = MachPort()
            try fixture.names.register(port, name: "a")
            // The rule is over when the watch has begun.
            _ = try SystemCallFaults.with([rule]) {
                try withWatch(fixture) { events, _, _ in
                    #expect(events.waitUntilCount(1) == ["+a \(own)"])
                    try fixture.names.register(port, name: "b")
                    #expect(events.waitUntilCount(2).last == "+b \(own)")
                    fixture.names.unregister("a")
                    #expect(events.waitUntilCount(3).last == "-a \(own)")
                    try withReadyPeer(["hold", fixture.directory], at: fixture, endsAs: .signalled(SIGKILL)) { holder in
                        try holder.write("take c\n")
                        #expect(events.waitUntilCount(4).last == "+c \(holder.processID)")
                        holder.kill()
                        #expect(events.waitUntilCount(5).last == "-c \(holder.processID)")
                    }
                }
            }
            #expect(fixture.names.intervalLookCount >= 5)
            port.invalidate()
        }
    }
}

#endif
