// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// An event without the parts that differ from run to run.
func short(_ event: NameEvent) -> String {
    switch event {
    case .appeared(let registration): "+\(registration.name) \(registration.owner)"
    case .went(let registration): "-\(registration.name) \(registration.owner)"
    }
}

extension NameMonitor {
    /// The next event as text. Its throws are not typed: see `failure`.
    func nextText() throws -> String? { try next().map(short) }
}

/// Watches the names of a directory on a loop of its own, and records the events.
func withWatch(
    _ fixture: NameFixture, in mode: RunLoopMode = .default,
    _ body: (Recorder<String>, ThreadRunLoop, NameWatch) throws -> Void
) throws {
    try withLoopThread { loop in
        let events = Recorder<String>("an event")
        let watch = try fixture.names.watch(on: loop, in: mode) { result in
            switch result {
            case .success(let event): events.append(short(event))
            case .failure(let error): events.append("\(error.code)")
            }
        }
        try body(events, loop, watch)
        watch.invalidate()
        // The loop releases the watch.
        let done = Gate("the loop's next block")
        loop.perform { done.open() }
        done.wait()
    }
}

/// Kills that many owners of a name, one after the other, and expects of a watch the two events of each.
private func killOwners(
    _ count: Int, at fixture: NameFixture, whileHeld: () throws -> Void = {}, afterDeath: () throws -> Void = {}
) throws {
    try withWatch(fixture) { events, _, _ in
        for round in 0..<count {
            try withPeer(["hold", fixture.directory], at: fixture, endsAs: .signalled(SIGKILL)) { holder in
                try holder.take("name")
                events.waitUntilCount(2 * round + 1)
                try whileHeld()
                holder.kill()
                let last = events.waitUntilCount(2 * round + 2).suffix(2)
                #expect(last == ["+name \(holder.processID)", "-name \(holder.processID)"])
                try afterDeath()
            }
        }
        #expect(events.count == 2 * count)
    }
}

@Suite("Watching names on a run loop", .leakCheck(warmingUp: makeSpareDescriptor))
struct NameWatchTests {
    let own = sysProcessID()

    @Test("first come the names that are there, by name; then what happens, in its order, each once")
    func order() async throws {
        try await withFixture { [own] fixture in
            let ports = [MachPort(), MachPort(), MachPort()]
            try fixture.names.register(ports[0], name: "b")
            try fixture.names.register(ports[1], name: "a")
            try withWatch(fixture) { events, _, _ in
                events.waitUntilCount(2)
                try fixture.names.register(ports[2], name: "d")
                try fixture.names.register(ports[2], name: "c")
                events.waitUntilCount(4)
                fixture.names.unregister("a")
                ports[0].invalidate()
                events.waitUntilCount(6)
                ports[2].invalidate()
                let all = events.waitUntilCount(8)
                #expect(
                    all.prefix(6) == ["+a \(own)", "+b \(own)", "+d \(own)", "+c \(own)", "-a \(own)", "-b \(own)"])
                #expect(Set(all.suffix(2)) == ["-c \(own)", "-d \(own)"])
            }
            ports[1].invalidate()
        }
    }

    @Test("the names of a killed owner go with it, 100 times in a row")
    func killed() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try killOwners(
                100, at: fixture,
                afterDeath: { #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown) })
        }
    }

    #if PORT_FAULTS
    @Test("the names of a killed owner go with it where process descriptors are refused, 5 times in a row")
    func killedWithoutProcessDescriptors() async throws {
        try await withFixture(leaving: .anything) { [own] fixture in
            try Refusals.forgetting {
                let refusal = SystemCallFaults.Rule(.pidfd_open, .fail(ENOSYS))
                #expect(SystemCallFaults.with([refusal]) { sysHasEnded(own) }.result == false)
                try killOwners(5, at: fixture)
                #expect(Refusals.processDescriptor.error == SystemError(ENOSYS))
            }
        }
    }
    #endif

    @Test("an owner that is killed while others try to get its name goes once, 100 times in a row")
    func killedAmongOthers() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try killOwners(
                100, at: fixture,
                whileHeld: {
                    // Each attempt closes the file after having opened it for writing.
                    let error = failure { try fixture.names.register(MachPort(), name: "name") }
                    #expect(error?.code == .nameTaken)
                })
        }
    }

    @Test("an owner whose lock goes without an event from the directory is noticed by its end")
    func withoutEvent() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { server in
                let monitor = try NameMonitor(fixture.directory)
                #expect(try monitor.nextText() == "+name \(server.processID)")
                #expect(try monitor.nextText() == nil)
                try server.killAndReap()
                // As if the scan had come between the event and the lock's end: the report is read and discarded.
                monitor.forgetDirectoryReports()
                #expect(try monitor.nextText() == "-name \(server.processID)")
                #expect(try monitor.nextText() == nil)
            }
        }
    }

    @Test("a name that is taken over at once goes and comes")
    func handover() async throws {
        try await withFixture { [own] fixture in
            try withWatch(fixture) { events, _, _ in
                var expected: [String] = []
                for _ in 0..<20 {
                    let port = MachPort()
                    try fixture.names.register(port, name: "name")
                    expected += ["+name \(own)", "-name \(own)"]
                    events.waitUntilCount(expected.count - 1)
                    port.invalidate()
                    events.waitUntilCount(expected.count)
                }
                #expect(events.elements == expected)
            }
        }
    }

    @Test(
        "all names go with a removed directory, and one that comes back brings its own, below a symbolic link too",
        arguments: [true, false], [false, true])
    func replaced(isMoved: Bool, isLinked: Bool) async throws {
        try await withFixture(leaving: .anything) { [own] first in
            var fixture = first
            if isLinked {
                let link = first.scratch.path("link")
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: ".")
                fixture = try NameFixture(first.scratch, directory: link + "/swift-ports")
            }
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            try withWatch(fixture) { events, _, _ in
                events.waitUntilCount(1)
                if isMoved {
                    try FileManager.default.moveItem(atPath: fixture.directory, toPath: fixture.scratch.path("away"))
                } else {
                    try FileManager.default.removeItem(atPath: fixture.directory)
                }
                #expect(events.waitUntilCount(2) == ["+name \(own)", "-name \(own)"])
                let other = MachPort()
                try PortNameServer(directory: fixture.directory).register(other, name: "other")
                #expect(events.waitUntilCount(3).last == "+other \(own)")
                // The server that was there before finds the new directory; a port with an address in the old one can
                // have a name in it.
                let right = try fixture.names.lookUp("other")
                #expect(right == other.makeSendRight())
                try fixture.names.register(port, name: "again")
                #expect(events.waitUntilCount(4).last == "+again \(own)")
                #expect(try fixture.names.lookUp("again") == port.makeSendRight())
                other.invalidate()
                #expect(events.waitUntilCount(5).last == "-other \(own)")
            }
            port.invalidate()
        }
    }

    @Test("a directory that is opened to others ends the watch with the reason, once")
    func untrusted() async throws {
        try await withFixture { fixture in
            try withWatch(fixture) { events, _, watch in
                chmod(fixture.directory, 0o750)
                #expect(events.waitUntilCount(1) == ["directoryUntrusted"])
                #expect(!watch.isValid)
                chmod(fixture.directory, 0o700)
            }
        }
    }

    @Test("more changes than the kernel queues are reported as the difference")
    func overflow() async throws {
        try await withFixture(leaving: .anything) { [own] fixture in
            let ports = [MachPort(), MachPort()]
            try fixture.names.register(ports[0], name: "goes")
            try fixture.names.register(ports[1], name: "stays")
            let monitor = try NameMonitor(fixture.directory)
            #expect(try monitor.nextText() == "+goes \(own)")
            #expect(try monitor.nextText() == "+stays \(own)")
            let limit = try String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
            let count = try #require(Int(limit.trimmingCharacters(in: .whitespacesAndNewlines)))
            let (one, two) = (try fixture.file("x"), try fixture.file("y"))
            // The kernel queues each report that differs from the one before.
            for _ in 0...(count / 4) {
                for path in [one, two] {
                    close(open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0o600))
                    unlink(path)
                }
            }
            ports[0].invalidate()
            let late = MachPort()
            try fixture.names.register(late, name: "comes")
            #expect(try monitor.nextText() == "-goes \(own)")
            #expect(try monitor.nextText() == "+comes \(own)")
            #expect(try monitor.nextText() == nil)
            late.invalidate()
            ports[1].invalidate()
        }
    }

    @Test("in a mode that does not run nothing is reported; later it is")
    func modes() async throws {
        try await withFixture { fixture in
            let events = Counter()
            let mode = RunLoopMode(rawValue: "test.names")
            let watch = try fixture.names.watch(on: .current, in: mode) { _ in
                events.increment()
                ThreadRunLoop.current.stop()
            }
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            ThreadRunLoop.current.run(mode: .default, for: .zero)
            #expect(events.value == 0)
            #expect(ThreadRunLoop.current.run(mode: mode, for: longTimeout) == .stopped)
            #expect(events.value == 1)
            watch.invalidate()
            port.invalidate()
            #expect(ThreadRunLoop.current.run(mode: mode, for: longTimeout) == .finished)
            #expect(events.value == 1)
        }
    }

    @Test("a handler that ends its watch gets no more events, and a loop whose thread ends releases its watches")
    func ends() async throws {
        try await withFixture { fixture in
            let ports = (0..<3).map { _ in MachPort() }
            for (number, port) in ports.enumerated() { try fixture.names.register(port, name: "\(number)") }
            let events = Counter()
            let watches = Recorder<NameWatch>()
            try onNewThread {
                let loop = ThreadRunLoop.current
                let watch = try fixture.names.watch(on: loop) { _ in
                    events.increment()
                    for watch in watches.takeAll() { watch.invalidate() }
                }
                watches.append(watch)
                #expect(loop.run(for: longTimeout) == .finished)
                #expect(events.value == 1)
                try fixture.names.watch(on: loop) { _ in events.increment() }
            }
            for port in ports { port.invalidate() }
        }
    }
}
