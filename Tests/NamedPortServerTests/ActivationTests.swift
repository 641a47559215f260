// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
import Glibc
@testable import MessagePort
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// systemd's activator for tests and shells.
private let activator = "/usr/bin/systemd-socket-activate"

extension NameFixture {
    /// The path at which the name's socket is declared; makes the directory.
    fileprivate func declared(_ name: String) throws -> String {
        mkdir(directory + "/declared", 0o700)
        return "\(directory)/declared/\(try PortName(name).fileName)"
    }

    /// Starts a peer as a supervisor does: with sockets from descriptor 3 on, and its own process id in its
    /// environment.
    fileprivate func launch(
        _ command: String, _ name: String, _ sockets: [CInt], names: String? = nil, process: String = "$$",
        count: String? = nil
    ) throws -> ChildProcess {
        let peer = try builtProduct("port-test-peer")
        return try ChildProcess(
            "/bin/sh", ["-c", "LISTEN_PID=\(process) exec '\(peer)' \(command) '\(directory)' '\(name)'"],
            environment: ["LISTEN_FDS": count ?? "\(sockets.count)", "LISTEN_FDNAMES": names], handing: sockets)
    }
}

@Suite("Activation by a supervisor", .leakCheck(warmingUp: makeSpareDescriptor))
struct ActivationTests {
    @Test("a client finds a declared name before its owner runs, and the owner answers the request once it comes")
    func beforeStart() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let socket = try packetListener(at: fixture.declared("org.example"))
            let port = try RemoteMessagePort(name: "org.example", nameServer: fixture.names)
            #expect(try fixture.names.list() == [])
            let request = runOnThread { try port.ask(Act.process) }
            let server = try fixture.launch("activated", "org.example", [socket.rawValue])
            try server.expect("checked in")
            let reply = try request.join()
            #expect(reply == "\(server.processID)")
            #expect(try fixture.names.list().map(\.owner) == [server.processID])
            // The name leads to the same port as before.
            let again = try fixture.names.lookUp("org.example")
            #expect(again == port.right)
            #expect(try server.waitForExit().end == .exited(0))
            #expect(try fixture.names.list() == [])
            let path = try fixture.declared("org.example")
            #expect(FileManager.default.fileExists(atPath: path), "the supervisor's")
        }
    }

    @Test("a look-up waits for room where too many clients wait to be accepted, up to its limit")
    func busy() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let socket = try packetListener(at: fixture.declared("busy"), backlog: 0)
            let first = SharedDescriptor(try sysPacketSocket())
            #expect(try sysConnect(first.rawValue, path: fixture.declared("busy")))
            #expect(failure { _ = try fixture.names.lookUp("busy", within: .zero) }?.code == .sendTimedOut)
            let before = MonotonicInstant.now
            #expect(failure { _ = try fixture.names.lookUp("busy", within: .milliseconds(50)) }?.code == .sendTimedOut)
            #expect(before.duration(to: .now) >= .milliseconds(50))
            let client = runOnThread { try fixture.names.lookUp("busy", within: Watchdog.longTimeout) }
            _ = try sysAccept(socket.rawValue)
            #expect(try !client.join().isDead)
        }
    }

    @Test("an owner that is killed is followed by the next, and no client is refused, 20 times in a row")
    func restart() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let socket = try packetListener(at: fixture.declared("name"))
            for _ in 0..<20 {
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                let server = try fixture.launch("activated", "name", [socket.rawValue])
                #expect(try port.ask(Act.process) == "\(server.processID)")
                try server.killAndReap()
                #expect(failure { _ = try port.ask(Act.process) }?.code == .deadName)
            }
        }
    }

    @Test("the descriptor's name serves where the path does not")
    func byDescriptorName() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let (one, two) = (
                try packetListener(at: fixture.scratch.path("one")), try packetListener(at: fixture.scratch.path("two"))
            )
            let sockets = [one.rawValue, two.rawValue]
            let server = try fixture.launch("activated", "name", sockets, names: "other:name")
            try server.expect("checked in")
            let record = try fixture.socket("name")
            #expect(record == fixture.scratch.path("two"))
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            #expect(try port.ask(Act.process) == "\(server.processID)")
            try server.waitForExit()
        }
    }

    @Test("the path wins over the descriptor's name, which several sockets of one unit share")
    func pathBeforeDescriptorName() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let paths = [
                fixture.scratch.path("elsewhere"), try fixture.declared("second"), try fixture.declared("first"),
            ]
            let listeners = try paths.map { try packetListener(at: $0) }
            let sockets = listeners.map(\.rawValue)
            // All sockets have the name of the first.
            for (name, path) in [("first", paths[2]), ("second", paths[1])] {
                let server = try fixture.launch("activated", name, sockets, names: "first:first:first")
                try server.expect("checked in")
                #expect(try fixture.socket(name) == path)
                try server.waitForExit()
            }
            // Without a path of its own a name does not get a socket that is declared for another.
            let server = try fixture.launch("activated", "third", [sockets[1]], names: "third")
            try server.expect("error nameNotDeclared")
            try server.waitForExit()
            let last = try fixture.launch("activated", "third", [sockets[1], sockets[0]], names: "third:third")
            try last.expect("checked in")
            #expect(try fixture.socket("third") == paths[0])
            try last.waitForExit()
            withExtendedLifetime(listeners) {}
        }
    }

    @Test(
        "a wait finds a socket that is declared during it, and a directory of sockets that comes",
        arguments: [true, false])
    func declaredLater(isDirectoryThere: Bool) async throws {
        try await withFixture(leaving: .anything) { fixture in
            if isDirectoryThere { _ = try fixture.declared("name") }
            let hasPolled = Gate("the second poll")
            let waiter = runOnThread {
                try SystemCallFaults.with([.init(.poll, .precede { hasPolled.open() }, skipping: 1)]) {
                    try fixture.names.waitFor("name", within: longTimeout)
                }.result
            }
            let task = Recorder<SendRight>("the task's right")
            Task { task.append(try await fixture.names.waitFor("name", within: longTimeout)) }
            // It has its path before it listens.
            let socket = SharedDescriptor(try sysPacketSocket())
            try sysBind(socket.rawValue, path: fixture.declared("name"))
            hasPolled.wait()
            #expect(!waiter.hasEnded)
            try sysListen(socket.rawValue, backlog: 128)
            let right = try waiter.join()
            #expect(task.waitUntilCount(1) == [right])
            #expect(try right == fixture.names.lookUp("name"))
            // A removed directory of names does not hide it.
            try FileManager.default.removeItem(atPath: fixture.directory + "/names")
            #expect(try fixture.names.waitFor("name", within: longTimeout) == right)
        }
    }

    @Test("a local port checks in, answers, and has its name")
    func localPort() async throws {
        try await withFixture(leaving: .anything) { fixture in
            #expect(
                failure { _ = try LocalMessagePort(checkingInAs: "name", nameServer: fixture.names) { _, _ in nil } }?
                    .code == .nameNotDeclared)
            let socket = try packetListener(at: fixture.declared("name"))
            let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            let server = try fixture.launch("activated-local", "name", [socket.rawValue])
            try server.expect("checked in as name")
            #expect(try port.ask(1, "abc") == "cba")
            try server.waitForExit()
        }
    }

    @Test("a socket is used once, and no child and no later program finds it")
    func once() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let socket = try packetListener(at: fixture.declared("name"))
            let server = try fixture.launch("activated-again", "name", [socket.rawValue], names: "unit.socket")
            for line in ["checked in", "error alreadyCheckedIn", "error nameNotDeclared", "error nameNotDeclared"] {
                try server.expect(line)
            }
            #expect(try server.waitForExit().end == .exited(0))
        }
    }

    @Test("a process without a declared socket gets an error, and may register")
    func notDeclared() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let port = MachPort()
            #expect(failure { try fixture.names.checkIn(port, name: "name") }?.code == .nameNotDeclared)
            #expect(failure { try fixture.names.checkIn(port, name: "") }?.code == .nameEmpty)
            try fixture.names.register(port, name: "name")
            port.invalidate()
            #expect(failure { try fixture.names.checkIn(port, name: "name") }?.code == .invalidPort)
            let socket = try packetListener(at: fixture.declared("name"))
            // Meant for another process; for another name; none at all.
            for (name, process, count) in [("name", "1", "1"), ("other", "$$", "1"), ("name", "$$", "0")] {
                let server = try fixture.launch("activated", name, [socket.rawValue], process: process, count: count)
                try server.expect("error nameNotDeclared")
                try server.waitForExit()
            }
        }
    }

    @Test("a descriptor that is no listening packet socket with a path is refused, and so is a senseless environment")
    func invalid() async throws {
        try await withFixture(leaving: .anything) { fixture in
            func expectInvalid(_ descriptor: CInt, names: String = "name", process: String = "$$", count: String = "1")
                throws
            {
                let server = try fixture.launch(
                    "activated", "name", [descriptor], names: names, process: process, count: count)
                try server.expect("error activationInvalid")
                #expect(try server.waitForExit().end == .exited(0))
            }
            let good = try packetListener(at: fixture.declared("name"))
            try expectInvalid(good.rawValue, process: "me")
            try expectInvalid(good.rawValue, count: "many")
            try expectInvalid(good.rawValue, count: "-1")
            try expectInvalid(good.rawValue, count: "3")
            try expectInvalid(good.rawValue, names: "name:more")
            let notListening = SharedDescriptor(try sysPacketSocket())
            try sysBind(notListening.rawValue, path: fixture.scratch.path("deaf"))
            try expectInvalid(notListening.rawValue)
            let nameless = SharedDescriptor(try sysPacketSocket())
            try expectInvalid(nameless.rawValue)
            let stream = SharedDescriptor(owning: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
            try sysBind(stream.rawValue, path: fixture.scratch.path("stream"))
            try sysListen(stream.rawValue, backlog: 1)
            try expectInvalid(stream.rawValue)
            let file = SharedDescriptor(try sysOpen("/dev/null", .reading))
            try expectInvalid(file.rawValue)
        }
    }

    @Test("a name that another process registered is taken for the declared owner too, which can check in later")
    func taken() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let socket = try packetListener(at: fixture.declared("name"))
            let own = MachPort()
            try fixture.names.register(own, name: "name")
            // The registered port comes before the declared socket.
            #expect(try fixture.names.lookUp("name") == own.makeSendRight())
            let server = try fixture.launch("activated", "name", [socket.rawValue])
            try server.expect("error nameTaken, owner \(sysProcessID())")
            try server.waitForExit()
            own.invalidate()
            let next = try fixture.launch("activated", "name", [socket.rawValue])
            try next.expect("checked in")
            try next.waitForExit()
        }
    }

    @Test("the variables are read as sd_listen_fds(3) says")
    func variables() throws {
        func names(_ process: String?, _ count: String?, _ names: String?) throws -> [String]? {
            try SupervisorVariables(process: process, count: count, names: names, own: 42)?.names
        }
        #expect(try names("42", "2", "a:b") == ["a", "b"])
        #expect(try names("42", "2", ":") == ["", ""])
        #expect(try names("42", "2", nil) == ["", ""])
        #expect(try names("42", "0", nil) == [])
        #expect(try names("41", "nonsense", nil) == nil)
        #expect(try names(nil, "1", nil) == nil)
        #expect(try names("42", nil, nil) == nil)
        for (process, count, text) in [("x", "1", "a"), ("42", "x", "a"), ("42", "-1", "a"), ("42", "1", "a:b")] {
            #expect(failure { _ = try names(process, count, text) }?.code == .activationInvalid)
        }
    }

    @Test(
        "under systemd-socket-activate the first client starts the owner, which answers it",
        .enabled(if: FileManager.default.isExecutableFile(atPath: activator), "needs systemd-socket-activate"),
        arguments: [nil, "org.example.activated"])
    func systemd(descriptorName: String?) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let name = "org.example.activated"
            let path = try fixture.declared(name)
            var arguments = ["--seqpacket", "-l", path]
            if let descriptorName { arguments.append("--fdname=" + descriptorName) }
            let server = try ChildProcess(
                activator,
                arguments + [try builtProduct("port-test-peer"), "activated", fixture.directory, name])
            // It reports only on its standard error that it listens. Each look-up that succeeds is a client.
            let deadline = Watchdog.deadline
            var port: RemoteMessagePort?
            while port == nil, .now < deadline {
                port = try? RemoteMessagePort(name: name, nameServer: fixture.names)
                sched_yield()
            }
            let reply = try #require(port).ask(Act.process)
            #expect(reply == "\(server.processID)")
            try server.expect("checked in")
            #expect(try fixture.names.list().map(\.name) == [name])
            let result = try server.waitForExit()
            #expect(result.end == .exited(0), "\(result.errors)")
        }
    }
}
