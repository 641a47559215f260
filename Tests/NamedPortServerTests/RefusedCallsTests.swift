// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Processes for which the kernel refuses system calls, by a filter like a container's. Not under the thread sanitizer:
/// each test starts processes, which takes minutes there, and their code has tests of its own.
@Suite(
    "Processes whose calls are refused", .leakCheck(warmingUp: makeSpareDescriptor),
    .disabled(if: hasThreadSanitizer, "its processes take minutes under the thread sanitizer"))
struct RefusedCallsTests {
    static let calls = [
        "epoll_pwait2", "eventfd2", "memfd-noexec", "memfd_create", "pidfd_open", "pidfd_send_signal", "waitid-pidfd",
        "peer-pidfd", "peer-groups", "ofd-locks", "close_range", "inotify_init1", "inotify_add_watch", "renameat2",
        "shutdown", "socketpair", "fallocate", "memory-seals", "container", "kernel-5.4", "gvisor", "no-pidfds",
    ]

    private func peer(_ words: [String], _ arguments: [String], at fixture: NameFixture) throws -> ChildProcess {
        try ChildProcess.refusing(
            words, builtProduct("port-test-peer"), arguments,
            environment: ["XDG_RUNTIME_DIR": fixture.scratch.path, "PORT_RING": "always"])
    }

    /// The calls without which a service has no rings: its memory, or what wakes its loop.
    static let callsOfRings: Set = ["memfd_create", "memory-seals", "shutdown", "socketpair", "fallocate"]

    @Test(
        "a service serves whichever call is refused, over rings where it can have them, and prints only a note on the main queue",
        arguments: calls,
        ["ENOSYS", "EPERM"])
    func service(call: String, error: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let server = try peer(["-e", error, call], ["serve", fixture.directory, "name"], at: fixture)
            try server.expect("ready")
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            // On a busy machine they might not be earned.
            try #require(port.right.destination as? RemotePort).reached().useRings(.always)
            for _ in 0..<200 { #expect(try port.ask(1, "abc") == "cba") }
            #expect(try server.hasRings() == !Self.callsOfRings.contains(call))
            let result = try server.waitForExit()
            #expect(result.end == .exited(0))
            let notes = result.errors.split(separator: "\n")
            #expect(notes.isEmpty || call == "eventfd2" && notes.count == 1)
            #expect(notes.allSatisfy { $0.contains("does not serve the main dispatch queue") })
        }
    }

    @Test(
        "a client sends requests whichever call is refused, after names were held with the locks of other processes",
        arguments: calls, ["ENOSYS", "EPERM"])
    func client(call: String, error: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture) { _ in
                let stay = ["connect-and-stay", fixture.directory, "name", "2"]
                let client = try peer(["-e", error, call], stay, at: fixture)
                try client.expect("replies 2")
                #expect(try client.hasRings() == !Self.callsOfRings.contains(call))
                #expect(try client.waitForExit().end == .exited(0))
            }
        }
    }

    @Test(
        "a worker process is launched, asked, identified and reaped whichever call is refused; without socketpair it fails",
        arguments: calls,
        ["ENOSYS", "EPERM"])
    func worker(call: String, error: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let launcher = try peer(["-e", error, call], ["launch"], at: fixture)
            if call == "socketpair" {
                // Its first connection to its launcher is a pair.
                try launcher.expect("error workerNotStarted")
            } else {
                try launcher.expect("reply cba")
                try launcher.expect("worker ended with status 0")
            }
            #expect(try launcher.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "processes without open-file-description locks and those with them exclude each other where the first has none")
    func locks() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let first = try peer(["ofd-locks"], ["hold", fixture.directory], at: fixture)
            try first.take("name")
            #expect(failure { try fixture.names.register(MachPort(), name: "name") }?.code == .nameTaken)
            let port = MachPort()
            try fixture.names.register(port, name: "other")
            try first.write("take other\n")
            try first.expect("error nameTaken, owner \(sysProcessID())")
            #expect(try fixture.names.list().map(\.name) == ["name", "other"])
            first.kill()
            try first.waitForExit()
            try fixture.names.register(port, name: "name")
            port.invalidate()
        }
    }

    @Test("where others have open-file-description locks, a process refused them gets an error and holds no name")
    func otherLocks() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            let later = try peer(["ofd-locks"], ["hold", fixture.directory], at: fixture)
            try later.expect("ready")
            try later.write("take other\n")
            try later.expect("error systemCallFailed")
            #expect(try later.waitForExit().end == .exited(0))
            port.invalidate()
        }
    }

    @Test(
        "what wakes peers, makes rings, watches and renames may be refused in mid-life: rings go on, new ports use sockets",
        arguments: ["ENOSYS", "EPERM"])
    func ringsInMidLife(error: String) async throws {
        await #expect(processExitsWith: .success) { [error = error as String] in
            try await askOverRings { fixture in
                refuseCalls(
                    "shutdown=\(error)", "socketpair=\(error)", "fallocate=\(error)", "inotify_init1=\(error)",
                    "inotify_add_watch=\(error)", "renameat2=\(error)", "memory-seals=\(error)")
                return try MachPort.registered("mine", at: fixture)
            } then: { fixture, one in
                #expect(failure { _ = try fixture.names.waitFor("late", within: longTimeout) }?.code == .watchLimit)
                fixture.names.lookInterval = .milliseconds(1)
                let registrar = runOnThread {
                    while fixture.names.intervalLookCount == 0 { yieldThread() }
                    return try MachPort.registered("late", at: fixture)
                }
                _ = try fixture.names.waitFor("late", within: longTimeout)
                try registrar.join().invalidate()
                for _ in 0..<200 { #expect(try one.ask(1, "abc") == "cba") }
            }
        }
    }

    @Test(
        "existing connections go on when calls are refused in mid-life, and new ones use the second path",
        arguments: ["ENOSYS", "EPERM"])
    func inMidLife(error: String) async throws {
        await #expect(processExitsWith: .success) { [error = error as String] in
            try await askOverRings { fixture in
                let name = try MachPort.registered("mine", at: fixture)
                refuseCalls(
                    "epoll_pwait2=\(error)", "eventfd2=\(error)", "memfd_create=\(error)", "pidfd_open=\(error)",
                    "pidfd_send_signal=\(error)", "io_uring_enter=\(error)")
                return name
            } then: { fixture, one in
                // Another thread, whose loop is new.
                let answers = try runOnThread { try (0..<50).map { _ in try one.ask(1, "abc") } }.join()
                #expect(answers == Array(repeating: "cba", count: 50))
                refuseCalls("ofd-locks")
                #expect(failure { try fixture.names.register(MachPort(), name: "late") }?.code == .systemCallFailed)
                // A failure to read the names is not reported as an empty list.
                #expect(failure { _ = try fixture.names.list() }?.code == .systemCallFailed)
                #expect(try one.ask(1, "abc") == "cba")
            }
        }
    }
}

/// Asks a service before calls are refused and afterwards, then one that starts afterwards; `rest` gets the first. A port
/// is registered before the refusal or after it.
private func askOverRings(
    refusing: @escaping @Sendable (NameFixture) throws -> MachPort,
    then rest: @escaping @Sendable (NameFixture, RemoteMessagePort) throws -> Void
) async throws {
    setenv("PORT_RING", "always", 1)
    try await withFixture(leaving: .anything) { fixture in
        try withServer("one", at: fixture) { _ in
            let one = try RemoteMessagePort(name: "one", nameServer: fixture.names)
            for _ in 0..<200 { #expect(try one.ask(1, "abc") == "cba") }
            let port = try refusing(fixture)
            for _ in 0..<200 { #expect(try one.ask(1, "abc") == "cba") }
            try withServer("two", at: fixture) { _ in
                let two = try RemoteMessagePort(name: "two", nameServer: fixture.names)
                for _ in 0..<200 { #expect(try two.ask(1, "abc") == "cba") }
            }
            try rest(fixture, one)
            port.invalidate()
        }
    }
}

extension MachPort {
    fileprivate static func registered(_ name: String, at fixture: NameFixture) throws -> MachPort {
        let port = MachPort()
        try fixture.names.register(port, name: name)
        return port
    }
}
