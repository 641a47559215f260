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

@Suite(
    "Shared directories", .leakCheck(warmingUp: makeSpareDescriptor),
    .enabled(if: Strangers.canAct, "only root can become other users, and those have to reach the programs (umask)"))
struct SharedDirectoryTests {
    // MARK: Privilege separation

    @Test(
        "a service under a user of its own serves clients of two others, and refuses those not admitted by its policy",
        arguments: ["never", "always"])
    func privilegeSeparation(rings: String) async throws {
        try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
            let log = fixture.scratch.path("log")
            try Data().write(to: URL(fileURLWithPath: log))
            chmod(log, 0o666)
            let policy = ["policy", "users:\(Strangers.client),\(Strangers.otherClient)"]
            let serve = policy + ["log", fixture.word, "store", log]
            try fixture.with(Strangers.service, serve, rings: rings) { service in
                try service.expect("ready")
                for user in [Strangers.client, Strangers.otherClient] {
                    // Exits with 3 if a reply belongs to another request.
                    try fixture.with(user, ["stream", fixture.word, "store", "500"], rings: rings) { _ in }
                }
                let asked = ["ask", fixture.word, "store", "1", "abc"]
                #expect(try fixture.first(Strangers.client, asked, rings: rings) == "reply abc")
                // A member of the group that the policy does not admit, and a user that cannot enter the directory.
                #expect(try fixture.first(Strangers.outsider, asked, rings: rings) == "error peerRefused")
                let stranger = ["as", "\(Strangers.outsider)", "ask", fixture.word, "store", "1", "abc"]
                try withPeer(stranger, at: NameFixture(fixture.scratch)) { try $0.expect("error systemCallFailed") }
                // Root counts as another user until it is admitted.
                let names = try PortNameServer(sharedDirectory: fixture.path)
                #expect(failure { _ = try names.lookUp("store").request(MachMessage(id: 1)) }?.code == .peerRefused)
            }
        }
    }

    @Test("a directory that was opened as a shared domain is not trusted once it is no domain any more")
    func withdrawnDomain() async {
        await #expect(processExitsWith: .success) {
            try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
                setenv(PortDirectory.variable, fixture.path, 1)
                PortDirectory.setDomain(fixture.path)
                let shared = try PortDirectory.user()
                #expect(try PortDirectory.user() === shared)
                PortDirectory.setDomain(nil)
                #expect(failure { _ = try PortDirectory.user() }?.code == .directoryUntrusted)
                PortDirectory.setDomain(fixture.path)
                #expect(try PortDirectory.user() === shared)
            }
        }
    }

    @Test("both ends of a connection between users have rings")
    func rings() async throws {
        try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
            try fixture.with(
                Strangers.service, ["policy", "members", "serve", fixture.word, "store"], rings: "always"
            ) { service in
                try service.expect("ready")
                let busyPeer = ["connect-and-stay", fixture.word, "store", "1"]
                try fixture.with(Strangers.client, busyPeer, rings: "always") { client in
                    try client.expect("replies 1")
                    var readCount = 0
                    for process in [service, client] {
                        // Root may not read everything: in a container not another user's process.
                        guard let hasRings = try? process.hasRings() else { continue }
                        readCount += 1
                        #expect(hasRings)
                    }
                    // Outside of containers root can read all processes.
                    #expect(try readCount == 2 || !mayTrace())
                }
            }
        }
    }

    @Test("members of the group are admitted by their supplementary group, and distinguished by user and process")
    func members() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let seen = Recorder<PeerIdentity>()
            let names = try PortNameServer(sharedDirectory: fixture.path)
            let local = try LocalMessagePort(name: "store", nameServer: names) { _, message in
                seen.append(message.sender)
                return message.bytes
            }
            let asked = ["ask", fixture.word, "store", "1", "abc"]
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(try fixture.first(Strangers.client, asked) == "error peerRefused")
                local.port.setPeerPolicy(try .members(of: names))
                #expect(try fixture.first(Strangers.client, asked) == "reply abc")
                #expect(try fixture.first(Strangers.otherClient, asked) == "reply abc")
                local.port.setPeerPolicy(.groups([Strangers.group + 1]))
                #expect(try fixture.first(Strangers.client, asked) == "error peerRefused")
            }
            #expect(seen.elements.map(\.userID) == [Strangers.client, Strangers.otherClient])
            // Their primary groups are others.
            #expect(seen.elements.map(\.groupID) == [Strangers.client, Strangers.otherClient])
            local.invalidate()
        }
    }

    /// Another user's process checks in at the port "main", and answers there with its number.
    private func expectRightOfOtherUser(at port: MachPort, _ fixture: SharedFixture) throws {
        let checkIn = ["policy", "members", "check-in", fixture.word, "main", "right"]
        try fixture.with(Strangers.client, checkIn) { worker in
            let message = try #require(try port.receive(within: longTimeout))
            #expect(message.sender.userID == Strangers.client)
            let right = try #require(message.replyPort)
            #expect(try right.request(MachMessage(id: Act.process)).text == "\(worker.processID)")
        }
    }

    @Test("a right to a port of another user, received in a message, leads to that port")
    func rightOfOtherUser() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            try fixture.setRules("* *\n")
            let names = try PortNameServer(sharedDirectory: fixture.path)
            let port = MachPort()
            try names.register(port, name: "main")
            port.setPeerPolicy(try .members(of: names))
            try expectRightOfOtherUser(at: port, fixture)
            port.invalidate()
            withExtendedLifetime(names) {}
        }
    }

    @Test("a name that is held in a shared directory keeps it open for rights of other users, without its name server")
    func heldNameKeepsDirectory() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            try fixture.setRules("* *\n")
            let port = MachPort()
            func register() throws {
                let names = try PortNameServer(sharedDirectory: fixture.path)
                try names.register(port, name: "main")
                port.setPeerPolicy(try .members(of: names))
            }
            try register()
            try expectRightOfOtherUser(at: port, fixture)
            port.invalidate()
        }
    }

    @Test("the processes of one other user have the limits of four together; another user has its own")
    func limitsOfUser() async throws {
        try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
            let serve = ["connections", "1", "policy", "members", "serve", fixture.word, "store"]
            try fixture.with(Strangers.service, serve) { service in
                try service.expect("ready")
                let stay = ["connect-and-stay", fixture.word, "store", "1"]
                func beside(_ count: Int, _ body: () throws -> Void) throws {
                    if count == 0 { return try body() }
                    try fixture.with(Strangers.client, stay) { client in
                        try client.expect("replies 1")
                        try beside(count - 1, body)
                    }
                }
                let ask = ["ask", fixture.word, "store", "1", "abc"]
                try beside(PeerLimits().processesOfUser) {
                    let (fifth, other) = (
                        try fixture.first(Strangers.client, ask), try fixture.first(Strangers.otherClient, ask)
                    )
                    #expect(fifth == "error tooManyConnections" && other == "reply cba")
                }
            }
        }
    }

    @Test("a service of another user is reached whichever opening of the directory ends, and by any path to it")
    func openedTwice() async throws {
        try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
            let serve = ["policy", "users:0", "serve", fixture.word, "store"]
            try fixture.with(Strangers.service, serve) { service in
                try service.expect("ready")
                func ask(_ names: PortNameServer) throws -> String {
                    try names.lookUp("store").request(MachMessage(id: 1, text: "abc")).text
                }
                let names = try PortNameServer(sharedDirectory: fixture.path)
                var other: PortNameServer? = try PortNameServer(sharedDirectory: fixture.path)
                withExtendedLifetime(other) {}
                other = nil
                #expect(try ask(names) == "cba")
                let link = fixture.scratch.path("link")
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: fixture.scratch.path)
                let linked = try PortNameServer(
                    sharedDirectory: link + fixture.path.dropFirst(fixture.scratch.path.utf8.count))
                #expect(try ask(linked) == "cba")
                withExtendedLifetime(names) {}
            }
        }
    }

    @Test("a port whose address is in a shared directory is registered there by another path to it, too")
    func registeredByAnotherPath() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let link = fixture.scratch.path("link")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: fixture.scratch.path)
            let names = try PortNameServer(sharedDirectory: fixture.path)
            let linked = try PortNameServer(
                sharedDirectory: link + fixture.path.dropFirst(fixture.scratch.path.utf8.count))
            let port = MachPort()
            try names.register(port, name: "one")
            try linked.register(port, name: "other")
            #expect(try linked.lookUp("one") == names.lookUp("other"))
            port.invalidate()
        }
    }

    // MARK: Which directories

    @Test("a directory that has rules and nothing else gets its parts by portctl list, as its owner")
    func rulesFirst() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            try fixture.setRules("store \(Strangers.service)\n")
            let portctl = try builtProduct("portctl")
            let list = try ChildProcess(portctl, ["list", "--directory", fixture.path])
            #expect(try list.waitForExit().end == .exited(0))
            #expect(
                try sysList(fixture.path).sorted() == ["declared", "names", "rules", "sockets", "supervisors"])
            try fixture.with(Strangers.service, ["hold", fixture.word]) { service in
                try service.take("store")
            }
            // The environment may name a shared directory, like the option.
            let environment = [PortDirectory.variable: fixture.path]
            let again = try ChildProcess(portctl, ["list", "--names"], environment: environment)
            #expect(try again.waitForExit().end == .exited(0))
        }
    }

    @Test("members connect to a declared socket, and a member may declare a name that the rules let it have")
    func declared() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            try fixture.setRules("mine \(Strangers.service)\n")
            var declared: DeclaredName? = try DeclaredName("store", in: names)
            let path = try #require(declared?.path)
            let status = try #require(try sysStatus(atPath: path))
            #expect(status.permissions == 0o660 && status.group == Strangers.group)
            try fixture.with(Strangers.client, ["connect-raw", path]) { client in
                try client.expect("connected")
                declared = nil
            }
            let portctl = try builtProduct("portctl")
            let words = ["activate", "--directory", fixture.path, "mine", "--", portctl, "serve", "mine", "--quiet"]
            try fixture.with(Strangers.service, ["exec", portctl] + words) { supervisor in
                _ = try names.waitFor("mine", within: longTimeout)
                let request = ["exec", portctl, "request", "--directory", fixture.path, "mine", "1", "abc"]
                #expect(try fixture.first(Strangers.client, request) == "abc")
                kill(supervisor.processID, SIGTERM)
            }
        }
    }

    @Test("doctor reports with whom a directory is shared, and that a member registers nothing there")
    func doctor() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            _ = try PortNameServer(sharedDirectory: fixture.path)
            let doctor = [try builtProduct("portctl"), "doctor", "--json", "--directory", fixture.path]
            for user in [0, Strangers.client] {
                // The worker that doctor tries has a directory of its user.
                let own = fixture.scratch.path("own-\(user)")
                #expect(mkdir(own, 0o700) == 0 && chown(own, user, user) == 0)
                // Its other findings depend on the system.
                let words = ["exec", "/bin/sh", "-c", "XDG_RUNTIME_DIR=\(own) \"$@\"; exit 0", "sh"] + doctor
                let text = try fixture.with(user, words) { doctor in
                    var lines: [String] = []
                    while let line = try doctor.nextLine() { lines.append(line) }
                    return lines.joined()
                }
                #expect(text.contains("user 0 shares it with group \(Strangers.group), mode 3770"))
                #expect(text.contains("registered, found and freed") == (user == 0))
                #expect(text.contains("this user registers none there") == (user != 0))
            }
        }
    }

    @Test(
        "a directory is shared with the modes 3770, 2750 and 0750 only, and is refused with the reason",
        arguments: [
            (0o3770, nil), (0o2750, nil), (0o0750, nil), (0o2770, .notSticky), (0o0770, .notSticky),
            (0o1770, .notSetGroup), (0o3777, .openToOthers), (0o2755, .openToOthers), (0o0740, .notSharedMode),
        ] as [(mode_t, PortError.StaticReason?)])
    func modes(mode: mode_t, reason: PortError.StaticReason?) async throws {
        try await withSharedFixture(mode: mode, owner: Strangers.service) { fixture in
            // Root makes the parts: it is a keeper of the directory, too.
            let refusal = failure { _ = try PortNameServer(sharedDirectory: fixture.path) }
            guard let reason else {
                #expect(refusal == nil)
                for part in ["names", "sockets"] {
                    let status = try #require(try sysStatus(atPath: "\(fixture.path)/\(part)"))
                    #expect(status.permissions == mode && status.group == Strangers.group && status.owner == 0)
                }
                return
            }
            #expect(refusal == PortError(.directoryUntrusted, subject: .path(fixture.path, reason)))
        }
    }

    @Test("a program that does not ask for a shared directory uses none")
    func strict() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            #expect(failure { _ = try PortNameServer(directory: fixture.path) }?.code == .directoryUntrusted)
            let hold = try fixture.first(Strangers.client, ["hold", fixture.path])
            #expect(hold == "error directoryUntrusted")
        }
    }

    @Test("the parts of a shared directory are made by its owner or root, and a member's are refused")
    func parts() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let held = try fixture.first(Strangers.client, ["hold", fixture.word])
            #expect(held == "error directoryUntrusted")
            let isMade = try fixture.shell(
                Strangers.client, "mkdir \(fixture.path)/names && chmod 3770 \(fixture.path)/names")
            #expect(isMade)
            let refusal = failure { _ = try PortNameServer(sharedDirectory: fixture.path) }
            #expect(refusal?.subject == .path(fixture.path + "/names", .memberOwner))
        }
    }

    @Test("a directory whose mode changes is used no more, and names in it stay held")
    func modeChanges() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            let port = MachPort()
            try names.register(port, name: "store")
            chmod(fixture.path, 0o2770)
            #expect(failure { _ = try names.lookUp("store") }?.subject == .path(fixture.path, .notSticky))
            chmod(fixture.path, 0o3770)
            #expect(try names.lookUp("store") == port.makeSendRight())
            port.invalidate()
        }
    }
}
