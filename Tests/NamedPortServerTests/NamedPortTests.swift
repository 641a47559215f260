// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Named ports within a process", .leakCheck(warmingUp: makeSpareDescriptor)) struct NamedPortTests {
    @Test("a handler that returns nothing replies an empty message; a request without bytes is an empty one")
    func emptyReplyAndRequest() async throws {
        try await withFixture { fixture in
            let seen = Recorder<MachMessage>()
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                seen.append(message)
                return nil
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                let remote = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                for request in [MachMessage(id: 1), MachMessage(id: 2, bytes: [])] {
                    let reply = try remote.request(request, sendLimit: longTimeout, replyLimit: longTimeout)
                    #expect(reply.id == request.id)
                    #expect(reply.bytes == [])
                }
                #expect(seen.elements.map(\.bytes) == [[], []])
                #expect(seen.elements.map(\.sender) == [.current, .current])
                local.invalidate()
            }
        }
    }

    @Test("a client and its server on one thread: the request runs the loop, which serves it, or is refused")
    func oneThread() async throws {
        try await withFixture { fixture in
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                message.bytes.reversed()
            }
            try local.schedule()
            let remote = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            #expect(try remote.ask(1, "abc", mode: .default) == "cba")
            let error = failure {
                _ = try remote.request(MachMessage(id: 1), replyLimit: .milliseconds(10))  // the private mode
            }
            #expect(error?.code == .wouldDeadlock)
            local.invalidate()
        }
    }

    @Test("a handler that invalidates its port and stops its loop still replies, and the name is free before")
    func lastReply() async throws {
        try await withFixture { fixture in
            let names = fixture.names
            let local = try LocalMessagePort(name: "name", nameServer: names) { port, _ in
                port.invalidate()
                ThreadRunLoop.current.stop()
                return Array((failure { _ = try names.lookUp("name") }?.code.description ?? "still there").utf8)
            }
            let loops = Recorder<ThreadRunLoop>()
            let server = runOnThread {
                try local.schedule()
                loops.append(.current)
                return ThreadRunLoop.current.run(for: longTimeout)
            }
            loops.waitUntilCount(1)
            let remote = try RemoteMessagePort(name: "name", nameServer: names)
            #expect(try remote.ask(1) == "nameUnknown")
            #expect(try server.join() == .stopped)
            #expect(!remote.isValid)
            #expect(failure { try remote.send(MachMessage(id: 1)) }?.code == .deadName)
        }
    }

    @Test("a port that is not scheduled keeps its requests until it is")
    func reserveThenServe() async throws {
        try await withFixture { fixture in
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in message.bytes }
            let names = fixture.names
            let clients = (0..<3).map { number in
                runOnThread { try RemoteMessagePort(name: "name", nameServer: names).ask(1, "\(number)") }
            }
            while local.port.queueCount < 3 && clients.allSatisfy({ !$0.hasEnded }) {}
            #expect(local.port.queueCount == 3)
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(try clients.map { try $0.join() } == ["0", "1", "2"])
                local.invalidate()
            }
        }
    }

    @Test("a handler may remove the reply right and reply later, or forward the request: then it replies nothing")
    func replyLater() async throws {
        try await withFixture { fixture in
            let retained = Recorder<MachMessage>("a request handed on")
            let other = MachPort()
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                guard let right = message.takeReplyRight() else { return nil }
                var onward = MachMessage(id: 2, bytes: message.bytes)
                onward.setReplyRight(right)
                try? other.makeSendRight().send(onward, within: .zero)
                retained.append(message)
                return Array("too early".utf8)
            }
            let names = fixture.names
            try withLoopThread { loop in
                try local.schedule(on: loop)
                let client = runOnThread { try RemoteMessagePort(name: "name", nameServer: names).ask(1, "abc") }
                retained.waitUntilCount(1)
                let onward = try #require(try other.tryReceive())
                #expect(!retained.elements[0].expectsReply)
                #expect(onward.expectsReply)
                // The first handler has returned when its loop has run another block.
                let returned = Gate("the handler's return")
                loop.perform { returned.open() }
                returned.wait()
                try onward.reply(MachMessage(id: 3, bytes: onward.bytes.reversed()))
                #expect(try client.join() == "cba")
                local.invalidate()
            }
        }
    }

    @Test("a taken name makes no port")
    func taken() async throws {
        try await withFixture { fixture in
            let first = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, _ in nil }
            let error = failure { _ = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, _ in nil } }
            #expect(error?.code == .nameTaken)
            #expect(error?.owner == sysProcessID())
            #expect(first.isValid)
            first.invalidate()
            #expect(
                failure { _ = try RemoteMessagePort(name: "name", nameServer: fixture.names) }?.code == .nameUnknown)
        }
    }

    @Test("invalidating a remote port leaves the server alone, and a new one is as good as the first")
    func invalidateRemote() async throws {
        try await withFixture { fixture in
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in message.bytes }
            try local.schedule()
            let first = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            let invalidations = Counter()
            try first.setInvalidationHandler { _ in invalidations.increment() }
            first.invalidate()
            first.invalidate()
            #expect(invalidations.value == 1)
            #expect(!first.isValid)
            #expect(failure { try first.send(MachMessage(id: 1)) }?.code == .invalidPort)
            #expect(failure { _ = try first.ask(1) }?.code == .invalidPort)
            #expect(local.isValid)
            let second = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            #expect(second.isValid)
            #expect(second == first)
            #expect(try second.ask(1, "still here", mode: .default) == "still here")
            local.invalidate()
        }
    }

    @Test("both ends are notified of the port's end exactly once, the client on the loop that it asked for")
    func invalidationHandlers() async throws {
        try await withFixture { fixture in
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, _ in nil }
            let ends = Counter("the server's end")
            local.setInvalidationHandler { ends.increment() }
            try withLoopThread { loop in
                let remote = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                let invalidations = Recorder<Bool>("the client's end")
                try remote.setInvalidationHandler(on: loop, in: .default) { _ in invalidations.append(loop.isCurrent) }
                #expect(remote.isValid)
                local.invalidate()
                local.invalidate()
                #expect(invalidations.waitUntilCount(1) == [true])
                #expect(ends.value == 1)
                #expect(!remote.isValid)
                remote.invalidate()
                try remote.setInvalidationHandler { _ in invalidations.append(false) }
                #expect(invalidations.count == 2)  // the second handler, set too late, was called by itself
            }
        }
    }

    @Test("a full queue accepts nothing more within the send limit, and goes on when there is room")
    func fullQueue() async throws {
        try await withFixture { fixture in
            let notes = Recorder<String>("the notes")
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names, queueLimit: 3) { _, message in
                notes.append(message.text)
                return nil
            }
            let remote = try RemoteMessagePort(name: "name", nameServer: fixture.names)
            for number in 0..<3 { try remote.send(MachMessage(id: 4, text: "\(number)"), sendLimit: .zero) }
            for limit in [Duration.zero, .seconds(-1), .milliseconds(10)] {
                #expect(failure { try remote.send(MachMessage(id: 4), sendLimit: limit) }?.code == .sendTimedOut)
                let request = failure { _ = try remote.request(MachMessage(id: 4), sendLimit: limit) }
                #expect(request?.code == .sendTimedOut)
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                try remote.send(MachMessage(id: 4, text: "3"), sendLimit: longTimeout)
                #expect(notes.waitUntilCount(4) == ["0", "1", "2", "3"])
                local.invalidate()
            }
        }
    }
}
