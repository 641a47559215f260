// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Assumptions of programs: names", .ports) struct AssumptionsNames {
    @Test("A1: a name that is taken in the process gives the same port, with the first handler; elsewhere none")
    func sameLocal() async throws {
        try await withFixture { fixture in
            let released = Counter()
            let first = try LocalMessagePort.shared(name: "name", nameServer: fixture.names) { _, _ in
                Array("first".utf8)
            }
            let probe = LifeProbe(released)
            let second = try LocalMessagePort.shared(
                name: "name", nameServer: try PortNameServer(directory: fixture.directory)
            ) {
                _, _ in
                withExtendedLifetime(probe) { Array("second".utf8) }
            }
            #expect(first.isNew)
            #expect(!second.isNew)
            #expect(first.port === second.port)
            #expect(second.port.port === first.port.port)
            try first.port.schedule()
            #expect(try fixture.remote(over: .memory).ask(1, mode: .default) == "first")
            let error = failure { _ = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, _ in nil } }
            #expect(error?.code == .nameTaken)
            #expect(error?.owner == sysProcessID())
            first.port.invalidate()
            let third = try LocalMessagePort.shared(name: "name", nameServer: fixture.names) { _, _ in nil }
            #expect(third.isNew)
            #expect(third.port != first.port)
            third.port.invalidate()
            try withServer("name", at: fixture) { server in
                let error = failure {
                    _ = try LocalMessagePort.shared(name: "name", nameServer: fixture.names) { _, _ in nil }
                }
                #expect(error?.code == .nameTaken)
                #expect(error?.owner == server.processID)
            }
        }
    }

    @Test("A1: a name that a bare port has is taken; the late handler is released")
    func notShared() async throws {
        try await withFixture { fixture in
            let bare = MachPort()
            try fixture.names.register(bare, name: "bare")
            let error = failure {
                _ = try LocalMessagePort.shared(name: "bare", nameServer: fixture.names) { _, _ in nil }
            }
            #expect(error?.code == .nameTaken)
            bare.invalidate()
            let local = try fixture.local()
            let released = Counter()
            var late: LifeProbe? = LifeProbe(released)
            _ = try LocalMessagePort.shared(name: "name", nameServer: fixture.names) { [late] _, _ in
                withExtendedLifetime(late) { nil }
            }
            late = nil
            #expect(released.value == 1)
            local.invalidate()
        }
    }

    @Test("A1, A16: of threads that ask for one name at once all get one object, 50 times")
    func race() async throws {
        try await withFixture { fixture in
            for _ in 0..<50 {
                let start = Gate()
                let threads = (0..<4).map { _ in
                    runOnThread {
                        start.wait()
                        let made = try LocalMessagePort.shared(name: "name", nameServer: fixture.names) { _, _ in nil }
                        return (
                            made.port, made.isNew, try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
                        )
                    }
                }
                start.open()
                let results = try threads.map { try $0.join() }
                #expect(Set(results.map(\.0)).count == 1)
                #expect(results.count { $0.1 } == 1)
                #expect(Set(results.map { ObjectIdentifier($0.2) }).count == 1)
                results[0].0.invalidate()
            }
        }
    }

    @Test("A2: whether the call returns an object says whether a name is there, between processes")
    func nothing() async throws {
        try await withFixture(leaving: .anything) { fixture in
            func remote() -> RemoteMessagePort? { try? .shared(name: "name", nameServer: fixture.names) }
            func local() -> LocalMessagePort? { try? fixture.local() }
            #expect(remote() == nil)
            try withServer("name", at: fixture, endsAs: .signalled(9)) { server in
                #expect(remote() != nil)
                #expect(local() == nil)
                #expect(try remote()?.ask(Act.process) == "\(server.processID)")
                try server.killAndReap()
                #expect(remote() == nil)
                let own = local()
                #expect(own != nil)
                #expect(remote() != nil)
                own?.invalidate()
            }
        }
    }

    @Test("A14: a name is free when invalidate returns, here and in another process, 50 times")
    func free() async throws {
        try await withFixture { fixture in
            try withReadyPeer(["hold", fixture.directory], at: fixture) { holder in
                for _ in 0..<50 {
                    let local = try fixture.local()
                    local.invalidate()
                    try holder.write("take name\n")
                    try holder.expect("taken")
                    #expect(failure { _ = try fixture.local() }?.code == .nameTaken)
                    try holder.write("free name\n")
                    try holder.expect("freed")
                }
            }
        }
    }

    @Test("A16: there is one remote object for a name; when it is invalid the server goes on, and a fresh one comes")
    func sameRemote() async throws {
        try await withFixture { fixture in
            try withServer("name", at: fixture) { _ in
                let first = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
                #expect(try RemoteMessagePort.shared(name: "name", nameServer: fixture.names) === first)
                let own = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(own !== first)
                #expect(own == first)
                first.invalidate()
                #expect(!first.isValid)
                #expect(own.isValid)
                let second = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
                #expect(second !== first)
                #expect(try second.ask(Act.reverse, "abc") == "cba")
                #expect(try RemoteMessagePort.shared(name: "name", nameServer: fixture.names) === second)
                #expect(failure { _ = try first.ask(Act.reverse) }?.code == .invalidPort)
            }
            #expect(
                failure { _ = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names) }?.code
                    == .nameUnknown)
        }
    }

    @Test("A16: the process does not retain an unreferenced remote object, and a new server's name gives a fresh one")
    func notRetained() async throws {
        try await withFixture { fixture in
            let released = Counter()
            let probe = Mutex<LifeProbe?>(LifeProbe(released))
            let local = try fixture.local()
            try RemoteMessagePort.shared(name: "name", nameServer: fixture.names).setInvalidationHandler { _ in
                probe.withLock { $0 = nil }
            }
            #expect(released.value == 1)  // its end called its handler, as when CF deallocates one
            let old = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
            local.invalidate()
            let other = try fixture.local()
            let fresh = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
            #expect(fresh !== old)
            #expect(fresh != old)
            #expect(!old.isValid)
            #expect(fresh.isValid)
            other.invalidate()
        }
    }

    @Test("A22, A29: objects are equal by identity, remote ones by the port, and the handler gets the object itself")
    func identity() async throws {
        try await withFixture { fixture in
            let seen = Recorder<LocalMessagePort>()
            let local = try fixture.local { port, _ in
                seen.append(port)
                return nil
            }
            let other = try fixture.local("other")
            try local.schedule()
            let ports = try (0..<3).map { _ in try RemoteMessagePort(name: "name", nameServer: fixture.names) }
            try ports[0].request(MachMessage(), mode: .default)
            #expect(seen.elements.map { $0 === local } == [true])
            #expect(Set([local, other, local]).count == 2)
            #expect(Set(ports).count == 1)
            #expect([ports[0]: 1][ports[1]] == 1)
            #expect(try fixture.remote("other", over: .memory) != ports[0])
            local.invalidate()
            other.invalidate()
        }
    }

    @Test("A22: an invalid remote object equals the fresh one for its port, not the one for its name's next port (M19)")
    func successor() async throws {
        try await withFixture { fixture in
            var local = try fixture.local()
            let first = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
            var known = [first: "first"]
            first.invalidate()
            let second = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
            #expect(second !== first && second == first)
            #expect(known[second] == "first" && known[first] == "first")
            local.invalidate()
            #expect(second == first)
            local = try fixture.local()
            let third = try RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
            #expect(third != first && third != second)
            known[third] = "third"
            #expect(known.count == 2)
            local.invalidate()
        }
    }

    @Test("A32: a name is a file in a directory that is closed to other users; one that is open to them is not used")
    func confinement() async throws {
        try await withFixture { fixture in
            let local = try fixture.local("com.example.any/name")
            for path in [fixture.directory, fixture.directory + "/names", fixture.directory + "/sockets"] {
                var status = stat()
                #expect(stat(path, &status) == 0)
                #expect(status.st_mode & 0o7777 == 0o700 && status.st_uid == geteuid(), "\(path)")
            }
            #expect(try sysStatus(atPath: fixture.file("com.example.any/name")) != nil)
            chmod(fixture.directory, 0o755)
            #expect(
                failure { _ = try PortNameServer(directory: fixture.directory).list() }?.code == .directoryUntrusted)
            chmod(fixture.directory, 0o700)
            local.invalidate()
        }
    }

    @Test("A32: no prefix confines a name: every process of the user registers every free one")
    func noPrefix() async throws {
        try await withFixture { fixture in
            let names = ["a", "com.apple.sandboxed", "group.team.app", "dir/ectory", "ünï"]
            let ports = try names.map { try fixture.local($0) }
            try withServer("com.apple.other", at: fixture) { _ in
                let listed = try fixture.names.list().map(\.name)
                #expect(Set(listed) == Set(names + ["com.apple.other"]))
                #expect(failure { _ = try fixture.local("com.apple.other") }?.code == .nameTaken)
            }
            for port in ports { port.invalidate() }
        }
    }
}
