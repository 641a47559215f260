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

extension SharedDirectoryTests {
    // MARK: Rules

    @Test("the rules say which user may register which name; without a rule the directory's owner and root may")
    func registering() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            func take(_ user: UInt32, _ name: String) throws -> String? {
                try fixture.with(user, ["hold", fixture.word]) { peer in
                    try peer.expect("ready")
                    try peer.write("take \(name)\n")
                    return try peer.nextLine()
                }
            }
            #expect(try take(Strangers.service, "org.example.store") == "error nameNotAllowed")
            try fixture.setRules(
                """
                # the users of each name
                org.example.store \(Strangers.service)
                org.example.*\t\(Strangers.client) \(Strangers.otherClient)

                open.%20* *
                """)
            #expect(try take(Strangers.service, "org.example.store") == "taken")
            #expect(try take(Strangers.client, "org.example.store") == "error nameNotAllowed")
            #expect(try take(Strangers.client, "org.example.other") == "taken")
            #expect(try take(Strangers.otherClient, "org.example.other") == "taken")
            #expect(try take(Strangers.service, "org.example.other") == "error nameNotAllowed")
            #expect(try take(Strangers.service, "elsewhere") == "error nameNotAllowed")
            #expect(try take(Strangers.outsider, "open. any") == "taken")
            let port = MachPort()
            try names.register(port, name: "elsewhere")
            port.invalidate()

            for bad in ["org.example.store\n", "a*b 1\n", "a one\n", "a -1\n", "a 4294967296\n"] {
                try fixture.setRules(bad)
                #expect(try take(Strangers.service, "org.example.store") == "error directoryUntrusted", "\(bad)")
            }
            try fixture.setRules("* *\n")
            chmod(fixture.path + "/rules", 0o664)
            #expect(try take(Strangers.service, "org.example.store") == "error directoryUntrusted")
        }
    }

    @Test("rules that a member has written have no effect")
    func foreignRules() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            _ = try PortNameServer(sharedDirectory: fixture.path)
            #expect(
                try fixture.shell(
                    Strangers.client, "echo '* *' > \(fixture.path)/rules; chmod 644 \(fixture.path)/rules"))
            try fixture.with(Strangers.client, ["hold", fixture.word]) { peer in
                try peer.expect("ready")
                try peer.write("take store\n")
                try peer.expect("error nameNotAllowed")
            }
        }
    }

    // MARK: Members against each other

    @Test("no member replaces, removes or opens to others another member's files")
    func sticky() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            _ = try PortNameServer(sharedDirectory: fixture.path)
            try fixture.setRules("store \(Strangers.service)\n")
            let serve = ["policy", "members", "serve", fixture.word, "store"]
            try fixture.with(Strangers.service, serve) { service in
                try service.expect("ready")
                let record = fixture.path + "/names/store"
                let socket = try #require(
                    NameRecord(contents: Array(try Data(contentsOf: URL(fileURLWithPath: record))))
                ).socketPath
                for file in [record, socket, fixture.path + "/rules"] {
                    for attempt in ["rm -f \(file)", "mv \(file) \(file).x", "ln -sf /dev/null \(file)", ": > \(file)"]
                    {
                        #expect(try !fixture.shell(Strangers.client, attempt), "\(attempt)")
                    }
                }
                #expect(
                    try !fixture.shell(
                        Strangers.client, "rmdir \(fixture.path)/sockets || mv \(fixture.path)/names \(fixture.path)/x")
                )
                let ask = ["ask", fixture.word, "store", "1", "abc"]
                #expect(try fixture.first(Strangers.client, ask) == "reply cba")
            }
        }
    }

    @Test("a record of a user that may not have the name is void, and the directory's owner removes it")
    func impersonation() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            try fixture.setRules("mine.* \(Strangers.client)\nstore \(Strangers.service)\n")
            let record = fixture.path + "/names/store"
            try fixture.with(Strangers.client, ["policy", "members", "serve", fixture.word, "mine.port"]) { mallory in
                try mallory.expect("ready")
                // Its record under another name, with a lock that would hold.
                let copy = "cp \(fixture.path)/names/mine.port \(record) && chmod 640 \(record)"
                #expect(try fixture.shell(Strangers.client, copy))
                let file = FileDescriptor(owning: open(record, O_RDWR | O_CLOEXEC))
                #expect(try sysLock(file.raw, .openFile))
                let ask = ["ask", fixture.word, "store", "1", "abc"]
                #expect(try fixture.first(Strangers.otherClient, ask) == "error nameUnknown")
                #expect(try names.list().map(\.name) == ["mine.port"])
                // It blocks the service until the directory's owner, root here, has swept.
                try fixture.with(Strangers.service, ["hold", fixture.word]) { service in
                    try service.expect("ready")
                    try service.write("take store\n")
                    #expect(try service.nextLine()?.hasPrefix("error nameTaken") == true)
                    let sweeper = MachPort()
                    try names.register(sweeper, name: "sweeping")
                    sweeper.invalidate()
                    try service.write("take store\n")
                    try service.expect("taken")
                }
                withExtendedLifetime(file) {}
            }
        }
    }

    #if PORT_FAULTS
    @Test("a file whose user locks it while it is removed is put back, unless that user may not have it")
    func takenMeanwhile() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try TrustedDirectory.open(path: fixture.path, mayBeShared: true).subdirectory("names")
            let path = names.path + "/store"
            // Whether the lock is held, which user may not own the file, and whether it is removed.
            let cases =
                [
                    (true, nil, false), (true, Strangers.client, false), (true, Strangers.service, true),
                    (false, nil, true),
                ] as [(Bool, uid_t?, Bool)]
            for (isTaken, denied, isRemoved) in cases {
                let file = FileDescriptor(owning: open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640))
                #expect(chown(path, Strangers.service, Strangers.group) == 0)
                let number = file.raw
                let take = SystemCallFaults.Rule(
                    .rename, .precede { if isTaken { _ = try? sysLock(number, .openFile) } })
                let (result, hits) = SystemCallFaults.with([take]) {
                    LockedFile.removeForeign("store", in: names, deniedTo: denied)
                }
                #expect(hits == 1)
                #expect(result == isRemoved)
                #expect(try sysList(names.path) == (isRemoved ? [] : ["store"]))
                withExtendedLifetime(file) {}
            }
        }
    }
    #endif

    @Test("another user's file under the id of a process does not keep the process's user from sweeping its leftovers")
    func sweptAmongOthers() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            let sockets = try TrustedDirectory.open(path: fixture.path, mayBeShared: true).subdirectory("sockets")
            let id = String(repeating: "a", count: 32)
            for (name, owner) in [("1", 0), ("2", 0), ("9", Strangers.client), ("lock", 0)] {
                let path = "\(sockets.path)/\(id).\(name)"
                close(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o640))
                #expect(chown(path, owner, Strangers.group) == 0)
            }
            let endpoints = try ProcessEndpoints(in: sockets)
            // Root may remove the other user's file, too.
            #expect(try sysList(sockets.path).allSatisfy { !$0.hasPrefix(id) })
            withExtendedLifetime((names, endpoints)) {}
        }
    }

    @Test("a name that leads to the socket of another user than the one whose name it is, is refused")
    func strangersSocket() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            try fixture.setRules("mine \(Strangers.client)\nstore \(Strangers.service)\n")
            try fixture.with(Strangers.service, ["policy", "members", "serve", fixture.word, "store"]) { service in
                try service.expect("ready")
                let copy =
                    "cp \(fixture.path)/names/store \(fixture.path)/names/mine && chmod 640 \(fixture.path)/names/mine"
                #expect(try fixture.shell(Strangers.client, copy))
                let error = failure { _ = try names.lookUp("mine") }
                #expect(error?.code == .peerRefused)
            }
        }
    }

    @Test("a lock for reading, which every member can acquire, holds no name and keeps no process from one")
    func readLock() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            try fixture.setRules("* *\n")
            let serve = ["policy", "members", "serve", fixture.word, "store"]
            try fixture.with(Strangers.service, serve, endsAs: .signalled(SIGKILL)) { service in
                try service.expect("ready")
                service.kill()
            }
            try fixture.with(Strangers.client, ["lock", fixture.path + "/names/store"]) { mallory in
                try mallory.expect("locked")
                #expect(try names.list().isEmpty)
                try fixture.with(Strangers.service, serve) { service in
                    try service.expect("ready")
                    #expect(try names.list().map(\.owner) == [service.processID])
                    #expect(try sysList(fixture.path + "/names").sorted() == ["store"])
                }
            }
        }
    }

    @Test("a port whose address is elsewhere cannot be registered where others would not reach it")
    func addressElsewhere() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            let names = try PortNameServer(sharedDirectory: fixture.path)
            let port = MachPort()
            try NameFixture(fixture.scratch).names.register(port, name: "private")
            #expect(failure { try names.register(port, name: "store") }?.code == .nameNotAllowed)
            #expect(try names.list().isEmpty)
            port.invalidate()
        }
    }

    @Test("names in a shared directory can be waited for and watched by a member")
    func watching() async throws {
        try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
            try fixture.with(Strangers.service, ["hold", fixture.word]) { service in
                try service.expect("ready")
                let names = try PortNameServer(sharedDirectory: fixture.path)
                let monitor = try names.monitor()
                #expect(try monitor.next() == nil)
                try service.write("take store\n")
                try service.expect("taken")
                _ = try names.waitFor("store", within: longTimeout)
                #expect(try !sysPoll(monitor.raw, .readable, until: Watchdog.deadline).isEmpty)
                #expect(try monitor.next()?.registration.owner == service.processID)
            }
        }
    }

    // MARK: Where

    @Test("a program's domain is a shared directory, and its ports have their addresses there")
    func domain() async throws {
        try await withSharedFixture(mode: 0o3770) { fixture in
            try withPeer(["domain", fixture.path], at: NameFixture(fixture.scratch)) { peer in
                try peer.expect("address \(fixture.path)/sockets")
                try peer.expect("names store")
                // The environment comes first.
                try peer.expect("names ")
                try peer.expect("names store")
            }
        }
    }

    @Test("portctl accepts a shared directory, and serves the users that share it")
    func portctl() async throws {
        try await withSharedFixture(mode: 0o2750, owner: Strangers.service) { fixture in
            let portctl = try builtProduct("portctl")
            let serve = ["exec", portctl, "serve", "--directory", fixture.path, "store"]
            try fixture.with(Strangers.service, serve) { service in
                #expect(try service.nextLine()?.contains("serves store") == true)
                let request = ["exec", portctl, "request", "--directory", fixture.path, "store", "1", "abc"]
                #expect(try fixture.first(Strangers.client, request) == "abc")
                #expect(
                    try fixture.first(
                        Strangers.client, ["exec", portctl, "list", "--names", "--directory", fixture.path])
                        == "store")
                let end = ["exec", portctl, "send", "--directory", fixture.path, "store", "0"]
                try fixture.with(Strangers.client, end) { _ in }
            }
        }
    }
}
