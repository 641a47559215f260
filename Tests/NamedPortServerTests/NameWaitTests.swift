// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Waiting for names", .leakCheck(warmingUp: makeSpareDescriptor))
struct NameWaitTests {
    @Test("a name that is there is found without a watch")
    func there() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            for limit in [Duration.zero, .seconds(-1), longTimeout] {
                let (right, calls) = try SystemCallFaults.counting { try fixture.names.waitFor("name", within: limit) }
                #expect(right == port.makeSendRight())
                #expect(calls[.inotify_init] == nil)
                #expect(calls[.poll] == nil)
            }
            port.invalidate()
        }
    }

    @Test("a name that does not come is an error at the limit, and not before")
    func limit() async throws {
        try await withFixture { fixture in
            for limit in [Duration.zero, .seconds(-5), .milliseconds(20)] {
                let start = MonotonicInstant.now
                let error = failure { _ = try fixture.names.waitFor("name", within: limit) }
                #expect(error?.code == .nameWaitTimedOut)
                #expect(start.duration(to: .now) >= limit)
                #expect(error?.description.contains("\"name\"") == true)
            }
            #expect(failure { _ = try fixture.names.waitFor("", within: longTimeout) }?.code == .nameEmpty)
        }
    }

    @Test("a name that comes at any moment of the call is found, 200 times in a row, without polling")
    func race() async throws {
        try await withFixture { fixture in
            for round in 0..<200 {
                let start = Gate("the start")
                let port = MachPort()
                let registration = runOnThread {
                    start.wait()
                    // At a different moment each time, however busy the machine is.
                    let moment = MonotonicInstant.after(.microseconds(round * 6))
                    while .now < moment {}
                    try fixture.names.register(port, name: "name")
                }
                start.open()
                let (right, calls) = try SystemCallFaults.counting {
                    try fixture.names.waitFor("name", within: longTimeout)
                }
                #expect(right == port.makeSendRight(), "round \(round)")
                // Created, truncated, written: few events, therefore few look-ups.
                #expect(calls[.poll, default: 0] <= 8, "round \(round)")
                try registration.join()
                port.invalidate()
            }
        }
    }

    @Test("a name that another process registers ends the wait, and other names do not")
    func otherProcess() async throws {
        try await withFixture { fixture in
            let waiter = runOnThread { try fixture.names.waitFor("name", within: longTimeout) }
            for _ in 0..<20 {
                let port = MachPort()
                try fixture.names.register(port, name: "other")
                port.invalidate()
            }
            #expect(!waiter.hasEnded)
            try withServer("name", at: fixture) { server in
                let right = try waiter.join()
                #expect(try right.request(MachMessage(id: Act.process)).text == "\(server.processID)")
            }
        }
    }

    @Test("a wait ignores a dead owner's record until the next owner has written its own")
    func deadOwner() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { try $0.killAndReap() }
            let waiter = runOnThread { try fixture.names.waitFor("name", within: longTimeout) }
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            #expect(try waiter.join() == port.makeSendRight())
            port.invalidate()
        }
    }

    /// A thread that waits for "name", or is about to.
    private func waitingThread(_ names: PortNameServer) -> TestThread<SendRight> {
        let waiting = Gate("the first poll")
        let waiter = runOnThread {
            waiting.open()
            return try names.waitFor("name", within: longTimeout)
        }
        waiting.wait()
        return waiter
    }

    @Test(
        "a wait outlives the directory: removed, moved away, replaced, below a symbolic link too",
        arguments: ["names", "", ".."], [false, true])
    func replaced(part: String, isLinked: Bool) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let outer = fixture.scratch.path("outer")
            let link = isLinked ? fixture.scratch.path("link") : outer
            if isLinked { try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "outer") }
            try FileManager.default.createDirectory(
                atPath: outer, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            let directory = link + "/ports"
            for isMoved in [true, false] {
                let names = try PortNameServer(directory: directory)
                let waiter = waitingThread(names)
                let target = part == ".." ? outer : part.isEmpty ? directory : directory + "/" + part
                if isMoved {
                    try FileManager.default.moveItem(atPath: target, toPath: fixture.scratch.path("away\(part.count)"))
                } else {
                    try FileManager.default.removeItem(atPath: target)
                }
                // A wait that begins while the directory is away.
                let late = Gate("the late one's wait")
                let lateWaiter = runOnThread {
                    try SystemCallFaults.with([.init(.poll, .precede { late.open() })]) {
                        try names.waitFor("name", within: longTimeout)
                    }.result
                }
                late.wait()
                if part == ".." {
                    try FileManager.default.createDirectory(
                        atPath: outer, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
                }
                let port = MachPort()
                try PortNameServer(directory: directory).register(port, name: "name")
                #expect(try waiter.join() == port.makeSendRight())
                #expect(try lateWaiter.join() == port.makeSendRight())
                port.invalidate()
            }
        }
    }

    @Test("a wait outlives a symbolic link above the directory that is made to lead elsewhere")
    func linkReplaced() async throws {
        try await withFixture(leaving: .anything) { fixture in
            for part in ["one", "two"] {
                try FileManager.default.createDirectory(
                    atPath: fixture.scratch.path(part), withIntermediateDirectories: false,
                    attributes: [.posixPermissions: 0o700])
            }
            let link = fixture.scratch.path("link")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "one")
            let names = try PortNameServer(directory: link + "/ports")
            let waiter = waitingThread(names)
            let port = MachPort()
            try PortNameServer(directory: fixture.scratch.path("two/ports")).register(port, name: "name")
            try FileManager.default.createSymbolicLink(
                atPath: fixture.scratch.path("new"), withDestinationPath: "two")
            #expect(rename(fixture.scratch.path("new"), link) == 0)
            let right = try waiter.join()
            #expect(right == port.makeSendRight())
            port.invalidate()
        }
    }

    @Test(
        "a wait notices a directory that comes back whatever the form of its path",
        arguments: ["/./ports", "//ports", "/.//./ports"])
    func oddPath(path: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let outer = fixture.scratch.path("outer")
            let directory = outer + path
            try FileManager.default.createDirectory(atPath: outer, withIntermediateDirectories: true)
            let names = try PortNameServer(directory: directory)
            for isThere in [true, false] {
                if !isThere { try FileManager.default.removeItem(atPath: directory) }
                let waiter = waitingThread(names)
                if isThere { try FileManager.default.removeItem(atPath: directory) }
                let port = MachPort()
                try PortNameServer(directory: directory).register(port, name: "name")
                #expect(try waiter.join() == port.makeSendRight())
                port.invalidate()
            }
        }
    }

    @Test("a wait does not bring back a directory that was removed")
    func removed() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try FileManager.default.removeItem(atPath: fixture.directory)
            let error = failure { _ = try fixture.names.waitFor("name", within: .milliseconds(20)) }
            #expect(error?.code == .nameWaitTimedOut)
            #expect(!FileManager.default.fileExists(atPath: fixture.directory))
        }
    }

    @Test("a directory that is opened to others during the wait is not trusted")
    func opened() async throws {
        try await withFixture { fixture in
            let waiter = runOnThread {
                failure { _ = try fixture.names.waitFor("name", within: longTimeout) }
            }
            chmod(fixture.directory, 0o755)
            let error: PortError? = try waiter.join()
            #expect(error?.code == .directoryUntrusted)
            chmod(fixture.directory, 0o700)
        }
    }

    @Test("without watches, instances or descriptors a wait is an error and leaves nothing open, 100 times")
    func limits() async throws {
        try await withFixture { fixture in
            let cases: [(SystemCall, CInt, PortError.Code)] = [
                (.inotify_init, EMFILE, .watchLimit), (.inotify_init, ENFILE, .descriptorLimit),
                (.inotify_init, ENOMEM, .systemCallFailed), (.inotify_add_watch, ENOSPC, .watchLimit),
                (.inotify_add_watch, ENOMEM, .systemCallFailed), (.poll, ENOMEM, .systemCallFailed),
                (.open, EMFILE, .descriptorLimit),
            ]
            for round in 0..<105 {
                let (call, number, code) = cases[round % cases.count]
                let before = openDescriptors()
                let rule = SystemCallFaults.Rule(call, .fail(number), skipping: call == .open ? 1 : 0)
                let error = failure {
                    _ = try SystemCallFaults.with([rule]) { _ = try fixture.names.waitFor("name", within: longTimeout) }
                }
                #expect(error?.code == code, "\(call) \(number)")
                #expect(openDescriptors() == before)
            }
            // No descriptor is left: that is no limit of inotify.
            let error = failure {
                _ = try SystemCallFaults.with([
                    .init(.inotify_init, .fail(EMFILE)), .init(.epoll_create, .fail(EMFILE)),
                ]) { _ = try fixture.names.waitFor("name", within: longTimeout) }
            }
            #expect(error?.code == .descriptorLimit)
        }
    }
}
