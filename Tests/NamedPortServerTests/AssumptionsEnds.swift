// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Assumptions of programs: ends", .ports) struct AssumptionsEnds {
    @Test(
        "A13: when the server is gone, its name is unknown, the old object invalid, and a request fails with -3",
        arguments: Transport.allCases)
    func gone(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            let remote = try fixture.remote(over: transport)
            #expect(remote.isValid)
            local.invalidate()
            #expect(!remote.isValid)
            let errors = [
                failure { try remote.send(MachMessage()) },
                failure { _ = try remote.request(MachMessage()) },
                failure { _ = try remote.request(MachMessage(), mode: .default) },
            ]
            #expect(errors.map(\.?.code) == [.deadName, .deadName, .deadName])
            #expect(errors.map(\.?.cfStatus) == [-3, -3, -3])
            #expect(failure { _ = try fixture.remote(over: transport) }?.code == .nameUnknown)
            remote.invalidate()
            #expect(failure { try remote.send(MachMessage()) }?.code == .invalidPort)
            #expect(failure { try remote.send(MachMessage()) }?.cfStatus == -3)
        }
    }

    @Test("A13: a server that ends before it replies: -5", arguments: Transport.allCases)
    func endsBeforeReply(transport: Transport) async throws {
        try await withFixture { fixture in
            try fixture.serving(over: transport) { port, message in
                port.invalidate()
                message.takeReplyRight()?.drop()
                return nil
            } _: { remote, _, _ in
                let error = failure { _ = try remote.ask(1) }
                #expect(error?.code == .peerDied)
                #expect(error?.delivery == .read)
            }
            try fixture.serving(over: transport) { port, _ in
                port.invalidate()
                ThreadRunLoop.current.stop()
                return nil
            } _: { remote, local, _ in
                let reply = try remote.ask(1)
                #expect(reply == "")  // it replied, for it was handling the request
                #expect(!local.isValid)
            }
            let local = try fixture.local()
            let remote = try fixture.remote(over: transport)
            let asking = runOnThread { failure { _ = try remote.ask(1) } }
            try Self.takeAndEnd(local)
            let error = try asking.join()
            #expect(error?.code == .peerDied)
            #expect(error?.cfStatus == -5)
        }
    }

    /// Receives a message, ends its port, and releases the message.
    private static func takeAndEnd(_ local: LocalMessagePort) throws {
        let message = try #require(try local.port.receive(within: longTimeout))
        local.invalidate()
        withExtendedLifetime(message) {}
    }

    @Test("A13: between processes too: a killed server is -5 for a waiting request, then -3, and unknown")
    func killed() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer(at: fixture, endsAs: .signalled(9)) { server in
                let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                let dying = failure { _ = try remote.ask(Act.die) }
                #expect(dying?.code == .peerDied)
                #expect(dying?.cfStatus == -5)
                try server.waitForExit()
                #expect(!remote.isValid)
                #expect(failure { _ = try remote.ask(Act.reverse) }?.cfStatus == -3)
                let again = failure { _ = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names) }
                #expect(again?.code == .nameUnknown)
            }
        }
    }

    @Test(
        "A28: the peer's end invalidates the object and notifies once, on the given loop", arguments: Transport.allCases
    )
    func invalidations(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            let remote = try fixture.remote(over: transport)
            let invalidations = Recorder<Bool>("the end")
            try withLoopThread { loop in
                try remote.setInvalidationHandler { _ in invalidations.append(false) }  // replaced: never called
                try remote.setInvalidationHandler(on: loop, in: .default) { _ in invalidations.append(loop.isCurrent) }
                #expect(remote.hasInvalidationHandler)
                local.invalidate()
                #expect(invalidations.waitUntilCount(1) == [true])
                remote.invalidate()
                ThreadRunLoop.current.run(for: .zero)
                #expect(invalidations.elements == [true])
                #expect(!remote.hasInvalidationHandler)
                // On an invalid object: at once on this thread, soon on another.
                try remote.setInvalidationHandler { _ in invalidations.append(true) }
                #expect(invalidations.count == 2)
                try remote.setInvalidationHandler(on: loop) { _ in invalidations.append(loop.isCurrent) }
                #expect(invalidations.waitUntilCount(3) == [true, true, true])
            }
        }
    }

    @Test("A28: between processes too, when the server is killed")
    func serverKilled() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer(at: fixture, endsAs: .signalled(9)) { server in
                let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                let loop = ThreadRunLoop.current
                let invalidations = Counter("the end")
                try remote.setInvalidationHandler { _ in
                    invalidations.increment()
                    loop.stop()
                }
                loop.add(RunLoopSource {})
                server.kill()
                #expect(loop.run(for: longTimeout) == .stopped)
                #expect(invalidations.value == 1)
                #expect(!remote.isValid)
            }
        }
    }

    @Test(
        "A28: invalidating the object notifies once too, on the given loop; nil stops that",
        arguments: Transport.allCases)
    func ownEnd(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            let invalidations = Recorder<Bool>("ends")
            try withLoopThread { loop in
                let remote = try fixture.remote(over: transport)
                try remote.setInvalidationHandler(on: loop) { _ in invalidations.append(loop.isCurrent) }
                remote.invalidate()
                #expect(invalidations.waitUntilCount(1) == [true])
                let silent = try fixture.remote(over: transport)
                try silent.setInvalidationHandler { _ in invalidations.append(false) }
                try silent.setInvalidationHandler(nil)
                silent.invalidate()
            }
            local.invalidate()
            ThreadRunLoop.current.run(for: .zero)
            #expect(invalidations.count == 1)
        }
    }

    @Test("A16, A28: clients that come, set an invalidation handler, and go, leave no connection")
    func clientsGo() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                func visit() throws {
                    let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                    try remote.setInvalidationHandler { _ in }
                    #expect(try remote.ask(Act.reverse, "abc", mode: .default) == "cba")
                    remote.invalidate()
                }
                try visit()
                try expectNoNewDescriptors { for _ in 0..<20 { try visit() } }
            }
        }
    }

    @Test("A local port's end notifies once: at once, or on the loop asked for; at once when it has ended already")
    func localEnd() async throws {
        try await withFixture { fixture in
            let invalidations = Recorder<String>("ends")
            let first = try fixture.local()
            first.setInvalidationHandler { invalidations.append("never: it is replaced") }
            first.setInvalidationHandler { invalidations.append("at once") }
            #expect(first.hasInvalidationHandler)
            first.invalidate()
            first.invalidate()
            #expect(invalidations.takeAll() == ["at once"])
            first.setInvalidationHandler { invalidations.append("too late") }
            #expect(invalidations.takeAll() == ["too late"])
            try withLoopThread { loop in
                let second = try fixture.local()
                second.setInvalidationHandler(on: loop) { invalidations.append("on its loop: \(loop.isCurrent)") }
                second.invalidate()
                #expect(invalidations.waitUntilCount(3) == ["on its loop: true"])
            }
        }
    }
}

@Suite("Assumptions of programs: what a handler captures", .ports) struct AssumptionsContext {
    /// A port whose handler captures an object.
    private func port(
        _ fixture: NameFixture, _ released: Counter, _ handler: @escaping LocalMessagePort.Handler = { _, _ in nil }
    ) throws -> LocalMessagePort {
        let probe = LifeProbe(released)
        return try fixture.local { port, message in withExtendedLifetime(probe) { handler(port, message) } }
    }

    @Test(
        "A17: the handler's captures are released when the port ends: after its notice, before invalidate returns")
    func released() async throws {
        try await withFixture { fixture in
            let released = Counter()
            let local = try port(fixture, released)
            try local.schedule()
            let seen = Recorder<Int>()
            local.setInvalidationHandler { seen.append(released.value) }
            #expect(released.value == 0)
            local.invalidate()
            #expect(seen.elements == [0])
            #expect(released.value == 1)
            _ = try port(fixture, released)  // no reference is left: it ends
            #expect(released.value == 2)
            #expect(failure { _ = try fixture.remote(over: .memory) }?.code == .nameUnknown)
        }
    }

    @Test(
        "A17: not while the handler is called, though the port is ended there or elsewhere",
        arguments: Transport.allCases)
    func whileCalled(transport: Transport) async throws {
        try await withFixture { fixture in
            let released = Counter("releases")
            let seen = Recorder<Int>("handlers")
            let (begun, ended) = (Gate(), Gate())
            let local = try port(fixture, released) { _, _ in
                begun.open()
                ended.wait()
                seen.append(released.value)
                return nil
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                try fixture.remote(over: transport).send(MachMessage())
                begun.wait()
                local.invalidate()
                #expect(released.value == 0)
                ended.open()
                released.waitUntilCount(1)
                #expect(seen.elements == [0])
                let other = try port(fixture, released) { port, _ in
                    port.invalidate()
                    seen.append(released.value)
                    return nil
                }
                try other.schedule(on: loop)
                try fixture.remote(over: transport).request(
                    MachMessage(), sendLimit: longTimeout, replyLimit: longTimeout)
                released.waitUntilCount(2)
                #expect(seen.elements == [0, 1])
            }
        }
    }

    @Test("A17: a loop retains a port without another reference, and its handler gets it; invalidated, it goes")
    func retainedByLoop() async throws {
        try await withFixture { fixture in
            let released = Counter("releases")
            try port(fixture, released) { port, message in
                if message.id == 2 { port.invalidate() }
                return Array((port.name ?? "").utf8)
            }.schedule()
            let remote = try fixture.remote(over: .memory)
            #expect(try remote.ask(1, mode: .default) == "name")
            #expect(released.value == 0)
            #expect(try remote.ask(2, mode: .default) == "name")
            #expect(released.value == 1)
        }
    }
}
