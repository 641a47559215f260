// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("the end of a port", .contract) struct DeathContract {
    @Test(
        "what is unread when its port ends bounces, also when an earlier reply is still owed",
        arguments: TestTransport.allCases)
    func unreadRequestsBounce(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (first, second, port) = (try bench.port(), try bench.port(), try bench.farPort())
            let right = try bench.right(to: port)
            try right.send(carrying(first.makeSendOnceRight()))
            let pending = try port.next()
            try right.send(carrying(second.makeSendOnceRight()))
            try port.invalidate()
            #expect(try second.next().id == MachMessage.sendOnceNotification)
            try pending.reply(MachMessage(id: 7))
            #expect(try first.next().id == 7)
            withExtendedLifetime(right) {}
        }
    }

    @Test("what is unread bounces also when its port ends while a handler asks whether its request is cancelled")
    func endsWhileItsConnectionIsRead() async throws {
        try await onBench(over: .socket) { bench in
            let ending = Box<MachPort>()
            let port = MachPort(
                queueLimit: MachPort.defaultQueueLimit, handler: nil,
                intercept: { message in
                    // On another thread: this one has the connection's packets.
                    if message.id == 1 { try? runOnThread { ending.value.withLock { $0.take() }?.invalidate() }.join() }
                    return false
                })
            ending.value.withLock { $0 = port }
            _ = try port.localPort.address(in: bench.directory)
            let right = try bench.right(to: port)
            let mine = try (0..<3).map { _ in try bench.port() }
            try right.send(carrying(mine[0].makeSendOnceRight()))
            let pending = try port.next()
            for id in Int32(1)...2 {
                var message = carrying(mine[Int(id)].makeSendOnceRight())
                message.id = id
                try right.send(message)
            }
            #expect(!pending.isCancelled)
            #expect(!port.isValid)
            for requester in mine[1...] { #expect(try requester.next().id == MachMessage.sendOnceNotification) }
            try pending.reply(MachMessage(id: 7))
            #expect(try mine[0].next().id == 7)
            withExtendedLifetime(right) {}
        }
    }

    @Test("a notice is delivered once, on its loop", arguments: TestTransport.allCases)
    func notice(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let (worker, notices) = (Worker(), Recorder<Bool>())
            let loop = worker.loop
            try right.notifyWhenDead(on: loop) { _ in notices.append(loop.isCurrent) }
            try right.send(MachMessage())
            try worker.perform {}
            #expect(notices.count == 0)
            try port.invalidate()
            #expect(notices.waitUntilCount(1) == [true])
            try worker.perform {}
            try port.invalidate()
            #expect(right.isDead)
            try worker.perform {}
            #expect(notices.elements == [true])
            try worker.end()
        }
    }

    @Test("a notice of a dead port is delivered soon, once", arguments: TestTransport.allCases)
    func deadAlready(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try port.invalidate()
            let (worker, notices) = (Worker(), Recorder<Int>())
            try right.notifyWhenDead(on: worker.loop) { _ in notices.append(1) }
            _ = portError { () throws(PortError) in try right.send(MachMessage()) }
            try right.notifyWhenDead(on: worker.loop) { _ in notices.append(2) }
            #expect(notices.waitUntilCount(2).sorted() == [1, 2])
            try worker.perform {}
            #expect(notices.count == 2)
            try worker.end()
        }
    }

    @Test("a dead right that arrived in a message delivers its notice too", arguments: TestTransport.allCases)
    func deadRight(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, dead) = (try bench.farPort(), try bench.farPort())
            let right = try bench.right(to: port)
            let deadRight = try bench.right(to: dead)
            try dead.invalidate()
            try right.send(MachMessage(components: [.right(deadRight)]))
            let received = try #require(try port.next().rights.first)
            let (worker, notices) = (Worker(), Counter("a death notice"))
            try received.notifyWhenDead(on: worker.loop) { _ in notices.increment() }
            notices.waitUntilCount(1)
            try worker.end()
        }
    }

    @Test("notices do not matter for what is sent and asked meanwhile", arguments: TestTransport.allCases)
    func useMeanwhile(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let worker = Worker("notices")
            try bench.serving(.echo) { right, port in
                let notices = Counter("death notices")
                for _ in 0..<3 { try right.notifyWhenDead(on: worker.loop) { _ in notices.increment() } }
                try right.notifyWhenDead { _ in notices.increment() }
                for id in Int32(0)..<100 {
                    let reply = try right.ask(MachMessage(id: id), mode: id % 2 == 0 ? .portReply : .default)
                    #expect(reply.id == id)
                }
                #expect(notices.value == 0)
                try port.invalidate()
                notices.waitUntilCount(3)
                let idle = RunLoopSource {}
                ThreadRunLoop.current.add(idle)
                while notices.value < 4 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                idle.invalidate()
            }
            try worker.end()
        }
    }

    @Test("a notice does not keep its loop from finishing", arguments: TestTransport.allCases)
    func finishes(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try right.notifyWhenDead { _ in }
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
        }
    }

    @Test("the invalidation handler is called once, on the invalidating thread", arguments: TestTransport.inProcess)
    func invalidationHandler(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let calls = Recorder<pthread_t>()
            port.setInvalidationHandler {
                #expect(!port.isValid)
                calls.append(pthread_self())
            }
            port.invalidate()
            port.invalidate()
            #expect(calls.elements == [pthread_self()])
            port.setInvalidationHandler { calls.append(pthread_self()) }
            #expect(calls.count == 2)
        }
    }

    @Test("of many threads that invalidate a port one calls its handler", arguments: TestTransport.inProcess)
    func racingInvalidations(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            for _ in 0..<50 {
                let (port, calls, notices) = (try bench.port(), Counter(), Counter())
                port.setInvalidationHandler { calls.increment() }
                try port.makeSendRight().notifyWhenDead { _ in notices.increment() }
                let start = Gate()
                let threads = (0..<3).map { _ in
                    runOnThread {
                        start.wait()
                        port.invalidate()
                    }
                }
                start.open()
                for thread in threads { try thread.join() }
                #expect(calls.value == 1)
                while notices.value == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                ThreadRunLoop.current.run(for: .zero)
                #expect(notices.value == 1)
            }
            idle.invalidate()
        }
    }

    @Test("a port that goes with its last reference calls its invalidation handler", arguments: TestTransport.inProcess)
    func released(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let calls = Counter()
            var port: MachPort? = try bench.port()
            port?.setInvalidationHandler { calls.increment() }
            port = nil
            #expect(calls.value == 1)
        }
    }

    @Test("a port is dead for its senders although an answered message is held", arguments: TestTransport.allCases)
    func retainedMessage(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let receiver = Worker("notices")
            try bench.serving(.echoAndKeep) { right, port in
                let notices = Gate("the death notice")
                try right.notifyWhenDead(on: receiver.loop) { _ in notices.open() }
                for id in Int32(0)..<3 {
                    let reply = try right.ask(MachMessage(id: id))
                    #expect(reply.id == id)
                }
                notices.wait()
                #expect(right.isDead)
                #expect(try port.lines() == ["retained 0", "retained 1", "retained 2"])
            }
            try receiver.end()
        }
    }

    @Test(
        "senders that are blocked when a port ends wake, although it still owes a reply",
        arguments: TestTransport.allCases)
    func blockedSenders(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let answered = runOnThread { try right.ask(MachMessage()).id }
            let pending = try port.next()
            _ = try right.fill(bytes: 3000)
            let queued = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code }
            let blocked = runOnThread { portError { () throws(PortError) in try right.send(MachMessage()) }?.code }
            try port.invalidate()
            // None of them got in; the one whose handling has started gets its reply.
            #expect(try blocked.join() == .deadName)
            #expect(try queued.join() == .deadName)
            try pending.reply(MachMessage(id: 6))
            #expect(try answered.join() == 6)
            #expect(right.isDead)
        }
    }

    @Test(
        "a request that waits in a socket learns at once that its port has ended, although another is being handled",
        arguments: TestTransport.connected)
    func waitingRequest(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            // The first message of each connection needs no room in the queue.
            let requests = try (Int32(0)..<2).map { id in
                let right = try bench.right(to: port)
                let waits = Gate("a request waits")
                let thread = runOnThread {
                    waitsNow(in: .portReply, waits)
                    return portError { () throws(PortError) in _ = try right.ask(MachMessage(id: id)) }?.code
                }
                waits.wait()
                return thread
            }
            let pending = try port.next()
            try port.invalidate()
            #expect(try requests[1 - Int(pending.id)].join() == .peerDied)
            let answered = Int(pending.id)
            try pending.reply(MachMessage())
            #expect(try requests[answered].join() == nil)
        }
    }

    @Test("an object that a handler holds may use the port in its deinit")
    func handlerRelease() async throws {
        try await onBench(over: .memory) { bench in
            let port = try bench.port()
            for _ in 0..<2 {
                do {
                    let last = Last { [weak port] in
                        port?.setHandler(nil)
                        port?.setInvalidationHandler(nil)
                    }
                    port.setHandler { _, _ in withExtendedLifetime(last) {} }
                    port.setInvalidationHandler { withExtendedLifetime(last) {} }
                }
                port.setHandler(nil)
                port.setInvalidationHandler(nil)
            }
        }
    }
}

/// Calls a closure when it is released.
private final class Last: Sendable {
    private let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }

    deinit {
        body()
    }
}
