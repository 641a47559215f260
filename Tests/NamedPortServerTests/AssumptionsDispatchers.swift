// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Assumptions of programs: queues that call the handler", .shared) struct AssumptionsDispatchers {
    /// Serves a port by a queue while `body` runs.
    private func dispatching(
        _ queue: DispatchQueue, at fixture: NameFixture, queueLimit: Int = MachPort.defaultQueueLimit,
        _ handler: @escaping LocalMessagePort.Handler, _ body: (LocalMessagePort) throws -> Void
    ) throws {
        let local = try fixture.local(queueLimit: queueLimit, handler)
        defer {
            local.invalidate()
            queue.sync(flags: .barrier) {}  // a running handler retains the port
        }
        try local.setDispatcher { queue.async(execute: $0) }
        try body(local)
    }

    @Test(
        "A21: a queue calls the handler, one message after the other and in order, though it could do more",
        arguments: Transport.allCases)
    func order(transport: Transport) async throws {
        try await withFixture { fixture in
            let key = DispatchSpecificKey<Bool>()
            let queue = DispatchQueue(label: "wide", attributes: .concurrent)
            queue.setSpecific(key: key, value: true)
            let (seen, inside) = (Recorder<Int32>("messages"), Counter())
            let strangers = Counter()
            try dispatching(queue, at: fixture) { _, message in
                if inside.increment() != 1 + 2 * seen.count { strangers.increment() }  // another is inside
                if DispatchQueue.getSpecific(key: key) != true { strangers.increment() }
                seen.append(message.id)
                inside.increment()
                return Array("\(message.id)".utf8)
            } _: { _ in
                let remote = try fixture.remote(over: transport)
                for id in 0..<Int32(200) { try remote.send(MachMessage(id: id), sendLimit: longTimeout) }
                #expect(try remote.ask(200) == "200")
                #expect(seen.elements == Array(0...200))
                #expect(strangers.value == 0)
            }
        }
    }

    @Test("A21: messages of another process reach the handler on the queue")
    func otherProcess() async throws {
        try await withFixture { fixture in
            let queue = DispatchQueue(label: "server")
            let seen = Recorder<String>("notes")
            try dispatching(queue, at: fixture, queueLimit: 2) { _, message in
                seen.append(message.text)
                return message.bytes.reversed()
            } _: { _ in
                try withPeer(["send", fixture.directory, "name", "500"], at: fixture) { _ in
                    #expect(seen.waitUntilCount(500) == (0..<500).map(String.init))
                }
                try withPeer(["ask", fixture.directory, "name", "1", "abc"], at: fixture) { try $0.expect("reply cba") }
            }
        }
    }

    @Test("A21: nil ends it: later messages wait, for another queue or a loop", arguments: Transport.allCases)
    func detach(transport: Transport) async throws {
        try await withFixture { fixture in
            let queue = DispatchQueue(label: "server")
            let seen = Recorder<Int32>("messages")
            try dispatching(queue, at: fixture) { _, message in
                seen.append(message.id)
                return nil
            } _: { local in
                let remote = try fixture.remote(over: transport)
                try remote.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: longTimeout)
                try local.setDispatcher(nil)
                for id in Int32(2)...4 { try remote.send(MachMessage(id: id)) }
                #expect(
                    failure { _ = try remote.request(MachMessage(id: 5), replyLimit: .milliseconds(1)) }?.cfStatus == -2
                )
                #expect(seen.elements == [1])
                try local.setDispatcher { $0() }  // where it is called, on the I/O thread
                #expect(seen.waitUntilCount(5) == [1, 2, 3, 4, 5])
                try local.setDispatcher(nil)
                try remote.send(MachMessage(id: 6))
                try local.schedule()
                #expect(try remote.ask(7, mode: .default) == "")
                #expect(seen.elements == Array(1...7))
            }
        }
    }

    @Test("A21: a run-loop source and a queue exclude each other, as in CFMessagePort")
    func exclusive() async throws {
        try await withFixture { fixture in
            let queue = DispatchQueue(label: "server")
            let local = try fixture.local()
            let source = try local.runLoopSource()
            let dispatcher: MachPort.Dispatcher = { queue.async(execute: $0) }
            #expect(failure { try local.setDispatcher(dispatcher) }?.code == .servedElsewhere)
            try local.setDispatcher(nil)
            #expect(source.isValid)
            source.invalidate()
            try local.setDispatcher(dispatcher)
            #expect(failure { _ = try local.runLoopSource() }?.code == .servedElsewhere)
            #expect(failure { try local.schedule() }?.code == .servedElsewhere)
            #expect(try fixture.remote(over: .memory).ask(1, "abc") == "cba")
            try local.setDispatcher { $0() }
            #expect(try fixture.remote(over: .memory).ask(1, "abc") == "cba")
            try local.setDispatcher(nil)
            try local.schedule()
            #expect(failure { try local.setDispatcher(dispatcher) }?.code == .servedElsewhere)
            local.port.unscheduleEverywhere()
            try local.setDispatcher(dispatcher)
            local.invalidate()
            #expect(failure { try local.setDispatcher(dispatcher) }?.code == .invalidPort)
        }
    }

    @Test(
        "A17, A18, A21: a queue retains the port; a handler that ends it replies, and its captures are released",
        arguments: Transport.allCases)
    func lifetime(transport: Transport) async throws {
        try await withFixture { fixture in
            let queue = DispatchQueue(label: "server")
            let released = Counter("releases")
            func serve() throws {
                let probe = LifeProbe(released)
                try fixture.local { port, message in
                    withExtendedLifetime(probe) {
                        if message.id == 2 { port.invalidate() }
                        return Array("\(released.value)".utf8)
                    }
                }.setDispatcher { queue.async(execute: $0) }
            }
            try serve()
            let remote = try fixture.remote(over: transport)
            #expect(try remote.ask(1) == "0")
            #expect(try remote.ask(2) == "0")
            released.waitUntilCount(1)
            queue.sync {}
        }
    }

    @Test(
        "A11: while a queue's handler is slow senders wait, and the shared thread sleeps", arguments: Transport.allCases
    )
    func pressure(transport: Transport) async throws {
        try await withFixture { fixture in
            let queue = DispatchQueue(label: "server")
            let (begun, goOn) = (Gate(), Gate())
            let seen = Recorder<Int32>("messages")
            try dispatching(queue, at: fixture, queueLimit: 2) { _, message in
                begun.open()
                goOn.wait()
                seen.append(message.id)
                return nil
            } _: { _ in
                let remote = try fixture.remote(over: transport)
                try remote.send(MachMessage(id: 0), sendLimit: longTimeout)
                begun.wait()
                var count: Int32 = 1
                while failure({ try remote.send(MachMessage(id: count), sendLimit: .zero) }) == nil { count += 1 }
                try expectSleep(of: IOThread.loop())
                goOn.open()
                try remote.send(MachMessage(id: count), sendLimit: longTimeout)
                #expect(seen.waitUntilCount(Int(count) + 1) == Array(0...count))
            }
        }
    }

    /// A loop that sleeps stays asleep, however long it is observed; one that is woken repeatedly does not.
    private func expectSleep(of loop: ThreadRunLoop) {
        for _ in 0..<1_000 {
            while !loop.isWaiting { yieldThread() }
            let before = loop.waitCounts
            for _ in 0..<1_000 { yieldThread() }
            if loop.waitCounts == before { return }
        }
        Issue.record("the loop does not sleep")
    }

    @Test("an asynchronous request has its reply, its limits, and the object's end", arguments: Transport.allCases)
    func asynchronous(transport: Transport) async throws {
        try await withScratchDirectory { scratch in
            let fixture = try NameFixture(scratch)
            let local = try fixture.local { _, message in
                message.id == 2 ? Self.keep(message) : message.bytes.reversed()
            }
            let queue = DispatchQueue(label: "server")
            try local.setDispatcher { queue.async(execute: $0) }
            let remote = try fixture.remote(over: transport)
            for limit in [Duration.unlimited, .seconds(3_600), .replyLimit(cfSeconds: 1e9)] {
                let reply = try await remote.request(MachMessage(text: "abc"), sendLimit: limit, replyLimit: limit)
                #expect(reply.text == "cba")
            }
            let late = await #expect(throws: PortError.self) {
                try await remote.request(MachMessage(id: 2), replyLimit: .milliseconds(1))
            }
            #expect(late?.cfStatus == -2)
            remote.invalidate()
            let ended = await #expect(throws: PortError.self) { try await remote.request(MachMessage()) }
            #expect(ended?.code == .invalidPort)
            local.invalidate()
            await offThePool { queue.sync {} }
        }
    }

    /// Replies once the request is cancelled.
    private static func keep(_ message: MachMessage) -> [UInt8]? {
        while !message.isCancelled { yieldThread() }
        return nil
    }

    @Test(
        "A21: a dispatcher may call its block itself: however many messages wait, and others are served meanwhile",
        arguments: Transport.allCases)
    func atOnce(transport: Transport) async throws {
        try await withFixture { fixture in
            let count = Int32(rounds(transport == .memory ? 50_000 : 5_000))
            let seen = Recorder<Int32>("messages")
            let local = try fixture.local(queueLimit: MachPort.maximumQueueLimit) { _, message in
                seen.append(message.id)
                return message.bytes.reversed()
            }
            let remote = try fixture.remote(over: transport)
            let sending = runOnThread {
                for id in 0..<count { try remote.send(MachMessage(id: id), sendLimit: longTimeout) }
            }
            if transport == .memory { try sending.join() }
            try local.setDispatcher { $0() }
            #expect(seen.waitUntilCount(Int(count)) == Array(0..<count))
            if transport == .socket { try sending.join() }
            #expect(try remote.ask(-1, "abc") == "cba")
            local.invalidate()
        }
    }

    @Test("A21: a dispatcher that calls its block itself when it is on its queue already keeps the order")
    func atOnceOnQueue() async throws {
        try await withFixture { fixture in
            let key = DispatchSpecificKey<Bool>()
            let queue = DispatchQueue(label: "server")
            queue.setSpecific(key: key, value: true)
            let seen = Recorder<Int32>("messages")
            let local = try fixture.local(queueLimit: MachPort.maximumQueueLimit) { _, message in
                seen.append(message.id)
                return nil
            }
            let remote = try fixture.remote(over: .memory)
            for id in 0..<Int32(20_000) { try remote.send(MachMessage(id: id)) }
            try local.setDispatcher { block in
                if DispatchQueue.getSpecific(key: key) == true { block() } else { queue.async(execute: block) }
            }
            #expect(seen.waitUntilCount(20_000) == Array(0..<20_000))
            local.invalidate()
            queue.sync {}
        }
    }
}
