// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Processes that die", .leakCheck(warmingUp: makeSpareDescriptor))
struct DyingProcessesTests {
    @Test("a server killed in mid-request is a dead peer, and its name is free")
    func serverDies() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { server in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(failure { _ = try port.ask(Act.die) }?.code == .peerDied)
                #expect(!port.isValid)
                #expect(failure { try port.send(MachMessage(id: Act.note)) }?.code == .deadName)
                #expect(failure { _ = try port.ask(Act.reverse) }?.code == .deadName)
                // The kernel closes a dying process's descriptors one by one: the name's may be the last.
                try server.waitForExit()
                #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
                let own = MachPort()
                try fixture.names.register(own, name: "name")
                #expect(try fixture.names.lookUp("name") != port.right)
                own.invalidate()
            }
        }
    }

    @Test("a server killed before it read the request is a dead peer too")
    func serverDiesUnread() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { server in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                server.pause()
                try port.send(MachMessage(id: Act.note), sendLimit: .zero)
                let killer = runOnThread { server.kill() }
                let error = failure { _ = try port.ask(Act.reverse) }
                try killer.join()
                // The kill may come before the request is sent.
                #expect(error?.code == .peerDied || error?.code == .deadName)
                #expect(failure { _ = try port.ask(Act.reverse) }?.code == .deadName)
            }
        }
    }

    @Test("a new server under an old name is another port, reached by looking the name up again")
    func restart() async throws {
        try await withFixture { fixture in
            var ports: [RemoteMessagePort] = []
            for _ in 0..<3 {
                try withServer("name", at: fixture) { server in
                    let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                    #expect(try port.ask(Act.process) == "\(server.processID)")
                    for old in ports { #expect(failure { _ = try old.ask(Act.process) }?.code == .deadName) }
                    ports.append(port)
                }
            }
            #expect(Set(ports).count == 3)
        }
    }

    @Test("a server that leaves in its handler still replies, and exits cleanly")
    func serverLeaves() async throws {
        try await withFixture { fixture in
            try withServer("name", at: fixture) { server in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(try port.ask(Act.leave) == "gone")
                let result = try server.waitForExit()
                #expect(result.end == .exited(0))
                #expect(!port.isValid)
            }
        }
    }

    @Test("a client killed in mid-request costs the server nothing")
    func clientDies() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let retained = Recorder<MachMessage>("the request")
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                if message.id == Act.reverse { return message.bytes.reversed() }
                var copy = MachMessage(id: message.id)
                if let right = message.takeReplyRight() { copy.setReplyRight(right) }
                retained.append(copy)
                return nil
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                // The first client makes the pools of the loop's thread and the listener.
                try withPeer(["ask", fixture.directory, "name", "1", "ab"], at: fixture) { try $0.expect("reply ba") }
                expectConnections(0, of: local.port)
                try withPeer(["ask", fixture.directory, "name", "8", ""], at: fixture, endsAs: .signalled(SIGKILL)) {
                    client in
                    retained.waitUntilCount(1)
                    try client.killAndReap()
                }
                let request = try #require(retained.takeAll().first)
                #expect(failure { try request.reply(MachMessage(id: 1)) }?.code == .deadName)
                expectConnections(0, of: local.port)
                try withPeer(["ask", fixture.directory, "name", "1", "ab"], at: fixture) { try $0.expect("reply ba") }
                local.invalidate()
            }
        }
    }

    /// Waits until the port has this number of connections: the loop notices their ends at some point.
    private func expectConnections(_ count: Int, of port: MachPort) {
        let deadline = Watchdog.deadline
        while port.localPort.connectionCount != count, .now < deadline { sched_yield() }
        #expect(port.localPort.connectionCount == count)
    }

    @Test("clients killed at any moment leave a server that serves the next one")
    func clientsDieAnywhere() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("name", at: fixture) { server in
                for _ in 0..<10 {
                    let client = try ChildProcess(
                        builtProduct("port-test-peer"), ["send", fixture.directory, "name", "1000000"])
                    _ = try server.nextLine()
                    try client.killAndReap()
                }
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(try port.ask(Act.reverse, "on") == "no")
            }
        }
    }

    @Test("an exit is reported once, on the loop that was asked for", arguments: [false, true])
    func invalidationHandler(kills: Bool) async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withLoopThread { loop in
                let invalidated = Recorder<Bool>("the server's end")
                let end = kills ? ProcessEnd.signalled(SIGKILL) : .exited(0)
                let port = try withServer("name", at: fixture, endsAs: end) { server in
                    let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                    try port.setInvalidationHandler(on: loop, in: .default) { _ in invalidated.append(loop.isCurrent) }
                    #expect(try port.ask(Act.reverse, "on") == "no")
                    #expect(port.isValid)
                    #expect(invalidated.count == 0)
                    if kills { server.kill() }
                    return port
                }
                #expect(invalidated.waitUntilCount(1) == [true])
                #expect(!port.isValid)
                port.invalidate()
                // All other reports of the loop have come when it reaches this block.
                let done = Gate("the loop's next block")
                loop.perform { done.open() }
                done.wait()
                #expect(invalidated.count == 1)
            }
        }
    }

    @Test("an invalidation handler of a remote port does not keep its loop from finishing")
    func handlerLetsFinish() async throws {
        try await withFixture { fixture in
            try withServer("name", at: fixture) { _ in
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                try port.setInvalidationHandler(on: .current, in: .default) { _ in }
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
                #expect(try port.ask(Act.reverse, "on") == "no")
            }
        }
    }
}
