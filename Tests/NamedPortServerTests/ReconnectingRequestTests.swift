// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Requests over rights to a name", .shared) struct ReconnectingRequestTests {
    /// Two ports that have the name one after the other; the first ends when it has a request.
    private func requesting(
        _ body: @escaping @Sendable (SendRight, Recorder<Int32>) throws -> Void
    ) async throws {
        try await withFixture { fixture in
            let ids = Recorder<Int32>("what the ports got")
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                let next = Recorder<LocalMessagePort>("the second port")
                let first = try fixture.local { port, message in
                    ids.append(message.id)
                    port.invalidate()
                    next.append(
                        LocalMessagePort(nameServer: fixture.names) { _, message in
                            ids.append(message.id)
                            return [2]
                        })
                    let second = next.elements[0]
                    try? second.setName("name")
                    try? second.schedule(on: .current)
                    // The reply right ends with the port.
                    message.takeReplyRight()?.drop()
                    return nil
                }
                try first.schedule(on: loop)
                try body(right, ids)
                for port in next.takeAll() { port.invalidate() }
            }
        }
    }

    @Test("a request in flight fails when its port ends, and is not sent again; the next one reaches the next port")
    func plain() async throws {
        try await requesting { right, ids in
            let error = failure { _ = try right.request(MachMessage(id: 1), replyLimit: longTimeout) }
            #expect(error?.code == .peerDied)
            #expect(error?.delivery == .read)
            let reply = try right.request(MachMessage(id: 2), replyLimit: longTimeout)
            #expect(reply.bytes == [2])
            #expect(ids.elements == [1, 2])
        }
    }

    @Test("an idempotent request is sent to the next port, once to each")
    func idempotent() async throws {
        try await requesting { right, ids in
            let reply = try right.request(
                MachMessage(id: 1), sendLimit: longTimeout, replyLimit: longTimeout, isIdempotent: true)
            #expect(reply.bytes == [2])
            #expect(ids.elements == [1, 1])
        }
    }

    @Test("an idempotent request whose next port does not come fails as the first one did")
    func idempotentAlone() async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                // On a busy machine the time may be over before the first port has ended: then it gets more.
                var (limit, error) = (Duration.milliseconds(30), nil as PortError?)
                repeat {
                    let local = try fixture.local { port, message in
                        port.invalidate()
                        message.takeReplyRight()?.drop()
                        return nil
                    }
                    try local.schedule(on: loop)
                    error = failure { _ = try right.request(MachMessage(), replyLimit: limit, isIdempotent: true) }
                    local.invalidate()
                    limit *= 3
                } while error?.code == .replyTimedOut && limit < longTimeout
                #expect(error?.code == .peerDied)
                #expect(error?.delivery == .read)
            }
        }
    }

    @Test("tasks wait for the next port, and a cancelled one sends nothing")
    func tasks() async throws {
        try await withAsyncFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            let cancelled = Task {
                do throws(PortError) {
                    _ = try await right.request(MachMessage(id: 1), sendLimit: longTimeout)
                    return PortError?.none
                } catch {
                    return error
                }
            }
            cancelled.cancel()
            let error = await cancelled.value
            #expect(error?.code == .cancelled && error?.delivery == .notSent)
            do throws(PortError) {
                try await right.send(MachMessage(), within: .milliseconds(5))
                Issue.record("nothing has the name")
            } catch {
                #expect(error.code == .nameWaitTimedOut)
            }
            let sender = Task { try await right.send(MachMessage(id: 2), within: longTimeout) }
            let asker = Task {
                try await right.request(
                    MachMessage(id: 3), sendLimit: longTimeout, replyLimit: longTimeout, isIdempotent: true
                ).bytes
            }
            let local = try fixture.local()
            var received: Set<Int32> = []
            for try await message in local.port.messages {
                received.insert(message.id)
                if message.expectsReply { try message.reply(MachMessage(bytes: [5])) }
                if received.count == 2 { break }
            }
            #expect(received == [2, 3])
            try await sender.value
            #expect(try await asker.value == [5])
            local.invalidate()
        }
    }

    @Test("100 ports in turn under load: each request that was answered was handled once, none twice")
    func restarts() async throws {
        try await withFixture { fixture in
            let handled = Recorder<Int32>("handled requests")
            let isOver = Gate("the last port")
            let clients = (0..<4).map { number in
                runOnThread { () throws -> [Int32] in
                    let port = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
                    var (answered, next) = ([Int32](), Int32(number) << 24)
                    while !isOver.isOpen {
                        next += 1
                        do throws(PortError) {
                            _ = try port.request(
                                MachMessage(id: next), sendLimit: longTimeout, replyLimit: longTimeout)
                            answered.append(next)
                        } catch {
                            if error.code != .peerDied { throw error }
                        }
                    }
                    return answered
                }
            }
            try withLoopThread { loop in
                for round in 0..<100 {
                    let local = try fixture.local { _, message in
                        handled.append(message.id)
                        return []
                    }
                    let count = handled.count
                    try local.schedule(on: loop)
                    handled.waitUntilCount(count + 20)
                    if round == 99 { isOver.open() }
                    if round < 99 { local.invalidate() } else { for client in clients { _ = try client.join() } }
                    if round == 99 { local.invalidate() }
                }
            }
            let all = handled.elements
            #expect(Set(all).count == all.count)
            for client in clients {
                let answered = try client.join()
                #expect(Set(all).isSuperset(of: answered))
            }
        }
    }

    @Test("a client whose requests are idempotent does not notice that its servers are killed in turn")
    func killedServers() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let port = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
            let isOver = Gate("the last server")
            let client = runOnThread { () throws -> Set<String> in
                var servers: Set<String> = []
                while !isOver.isOpen {
                    servers.insert(
                        try port.request(
                            MachMessage(id: Act.process), sendLimit: longTimeout, replyLimit: longTimeout,
                            isIdempotent: true
                        ).text)
                }
                return servers
            }
            var killed: Set<String> = []
            for round in 0..<100 {
                try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { server in
                    let own = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
                    #expect(try own.ask(Act.process) == "\(server.processID)")
                    killed.insert("\(server.processID)")
                    if round == 99 {
                        isOver.open()
                        _ = try client.join()
                    }
                    server.kill()
                }
            }
            #expect(try client.join().isSubset(of: killed))
        }
    }
}
