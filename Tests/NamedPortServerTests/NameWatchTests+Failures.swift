// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

extension NameWatchTests {
    @Test("without descriptors, watches or instances there is no watch, and nothing is left open, 100 times")
    func limits() async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            loop.run(for: .zero)
            let cases: [(SystemCall, CInt, PortError.Code)] = [
                (.inotify_init, EMFILE, .watchLimit), (.inotify_add_watch, ENOSPC, .watchLimit),
                (.epoll_create, EMFILE, .descriptorLimit), (.epoll_ctl, ENOSPC, .systemCallFailed),
            ]
            let warm = try fixture.names.watch(on: loop) { _ in }
            warm.invalidate()
            loop.run(for: .zero)
            for round in 0..<100 {
                let (call, number, code) = cases[round % cases.count]
                let before = openDescriptors()
                let error = failure {
                    _ = try SystemCallFaults.with([.init(call, .fail(number))]) {
                        _ = try fixture.names.watch(on: loop) { _ in }
                    }
                }
                #expect(error?.code == code, "\(call) \(number)")
                #expect(openDescriptors() == before)
            }
        }
    }

    @Test(
        "a scan that fails loses nothing: the next one reports", arguments: [SystemCall.open, .read, .fstat])
    func failedPoll(call: SystemCall) async throws {
        try await withFixture { fixture in
            let monitor = try NameMonitor(fixture.directory)
            #expect(try monitor.nextText() == nil)
            try withServer("name", at: fixture) { server in
                let error = failure {
                    _ = try SystemCallFaults.with([.init(call, .fail(EMFILE))]) { _ = try monitor.next() }
                }
                #expect(error?.code == .descriptorLimit)
                let texts: [String?] = [try monitor.nextText(), try monitor.nextText()]
                #expect(texts == ["+name \(server.processID)", nil])
            }
            #expect(try monitor.nextText()?.hasPrefix("-name ") == true)
        }
    }

    #if PORT_FAULTS
    @Test(
        "F-A2: a watch on a loop tries again when this process has no descriptor or memory left, and misses nothing",
        arguments: [(SystemCall.open, EMFILE), (.open, ENOMEM), (.read, ENFILE)])
    func shortageOnLoop(call: SystemCall, code: CInt) async throws {
        try await withFixture { fixture in
            let events = Recorder<String>("an event")
            let loop = ThreadRunLoop.current
            try withServer("name", at: fixture) { server in
                let watch = try fixture.names.watch { result in
                    events.append((try? result.get()).map(short) ?? "\(result)")
                    loop.stop()
                }
                let hits = SystemCallFaults.with([.init(call, .fail(code), times: 2)]) {
                    _ = loop.run(until: Watchdog.deadline)
                }.hits
                #expect(hits == 2)
                #expect(events.elements == ["+name \(server.processID)"])
                #expect(watch.isValid)
                watch.invalidate()
            }
        }
    }
    #endif

    @Test(
        "F-A6: an owner that cannot be watched ends no watch: its names are read now and then",
        arguments: [(SystemCall.pidfd_open, EMFILE), (.pidfd_open, ENOSYS), (.pidfd_open, EPERM), (.epoll_ctl, ENOSPC)])
    func unwatchedOwner(call: SystemCall, number: CInt) async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { server in
                let monitor = try NameMonitor(fixture.directory)
                let refused = [SystemCallFaults.Rule(call, .fail(number))]
                let (text, hits) = try Refusals.forgetting {
                    try SystemCallFaults.with(refused) { try monitor.nextText() }
                }
                #expect(text == "+name \(server.processID)" && hits == 1)
                #expect(try monitor.nextText() == nil)
                try server.killAndReap()
                monitor.forgetDirectoryReports()
                var event: String?
                while event == nil {
                    _ = try sysPoll(monitor.raw, .readable, until: monitor.nextCheck)
                    event = try monitor.nextText()
                }
                #expect(event == "-name \(server.processID)")
                #expect(monitor.nextCheck == .distantFuture)
            }
        }
    }

    @Test("F-A6: a loop's watch reads now and then the names of an owner that it cannot watch")
    func unwatchedOwnerOnLoop() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let names = try TrustedDirectory.open(path: fixture.directory + "/names")
            try withWatch(fixture) { events, _, _ in
                // No process has this number.
                let held = try ClaimedName("name", owner: .max, in: names)
                #expect(events.waitUntilCount(1) == ["+name \(Int32.max)"])
                try held.unlock()
                #expect(events.waitUntilCount(2).last == "-name \(Int32.max)")
            }
        }
    }

    @Test("all names go with a directory that goes while it is read, and no watch ends")
    func endsDuringListing() async throws {
        try await withFixture(leaving: .anything) { [own] fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            for call in [SystemCall.open, .readdir, .fcntl] {
                _ = try PortNameServer(directory: fixture.directory)
                let monitor = try NameMonitor(fixture.directory)
                let rule = SystemCallFaults.Rule(
                    call, .precede { try? FileManager.default.removeItem(atPath: fixture.directory) })
                let error = failure {
                    _ = try SystemCallFaults.with([rule]) { while try monitor.next() != nil {} }
                }
                #expect(error == nil, "\(call)")
                _ = try PortNameServer(directory: fixture.directory)
                try fixture.names.register(port, name: "\(call)")
                var last: String?
                while let text = try monitor.nextText() { last = text }
                #expect(last == "+\(call) \(own)")
            }
            port.invalidate()
        }
    }

    @Test("a watch that ends while it scans reports nothing more, neither a name nor a failure")
    func invalidatedDuringListing() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let (loop, events) = (ThreadRunLoop.current, Counter())
            for fails in [false, true] {
                let watch = try fixture.names.watch(on: loop) { _ in events.increment() }
                var rules = [SystemCallFaults.Rule(.readdir, .precede { watch.invalidate() })]
                if fails { rules.append(.init(.readdir, .fail(EIO))) }
                let (result, hits) = SystemCallFaults.with(rules) { loop.run(for: longTimeout) }
                #expect(result == .finished)
                #expect(hits == rules.count)
                #expect(events.value == 0)
            }
            port.invalidate()
        }
    }
}
