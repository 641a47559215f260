// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("requests", .contract) struct RequestContract {
    @Test("a request is answered with its reply", arguments: TestTransport.withName)
    func reply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.reverse) { right, port in
                for id in Int32(0)..<50 {
                    let reply = try right.ask(MachMessage(id: id, bytes: [1, 2, UInt8(id)]))
                    #expect(reply.id == id + 1)
                    #expect(reply.bytes == [UInt8(id), 2, 1])
                    #expect(!reply.expectsReply)
                }
                try port.settle()
                #expect(try port.lines() == [])
            }
        }
    }

    @Test("in the private mode a waiting request lets nothing else run (S26)", arguments: TestTransport.withName)
    func privateMode(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.reverse) { right, _ in
                let calls = Counter("callouts of this thread's loop")
                let mine = try bench.port { _, _ in calls.increment() }
                try mine.schedule(in: .common)
                try bench.right(to: mine).send(MachMessage())
                let timer = RunLoopTimer(fireDate: .distantPast) { _ in calls.increment() }
                ThreadRunLoop.current.add(timer, to: .common)
                let source = RunLoopSource { calls.increment() }
                ThreadRunLoop.current.add(source, to: .common)
                source.signal()
                ThreadRunLoop.current.perform(in: [.common]) { calls.increment() }
                #expect(try right.ask(MachMessage()).id == 1)
                #expect(calls.value == 0)
                // They were not lost, only deferred.
                while calls.value < 4 { ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true) }
                #expect(calls.value == 4)
                source.invalidate()
                mine.invalidate()
            }
        }
    }

    @Test("in the default mode a waiting request serves other sources, re-entrantly", arguments: TestTransport.withName)
    func defaultMode(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            // The server asks the client back before it answers: only a client that serves its own port can help it.
            try bench.serving(.askBack) { right, _ in
                let mine = try bench.port { _, message in try? message.reply(MachMessage(id: message.id * 6)) }
                try mine.schedule()
                let reply = try right.ask(MachMessage(replyPort: bench.right(to: mine)), mode: .default)
                #expect(reply.id == 42)
                mine.invalidate()
            }
        }
    }

    @Test("a request to a port of the same loop is served by the nested run", arguments: TestTransport.inProcess)
    func sameLoop(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let depth = Counter("handlers on the stack")
            let rights = Box<SendRight>()
            let port = try bench.port { _, message in
                depth.increment()
                if message.id < 5, let right = rights.value.withLock({ $0 }) {
                    let inner = try? right.ask(MachMessage(id: message.id + 1), mode: .default)
                    try? message.reply(MachMessage(id: inner?.id ?? -1))
                } else {
                    try? message.reply(MachMessage(id: Int32(depth.value)))
                }
            }
            try port.schedule()
            let right = try bench.right(to: port)
            rights.value.withLock { $0 = right }
            #expect(try right.ask(MachMessage(id: 1), mode: .default).id == 5)
            port.invalidate()
        }
    }

    @Test("a stop during a request does not end it, but the run below", arguments: TestTransport.inProcess)
    func stopDuringRequest(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let client = ThreadRunLoop.current
            try bench.serving({ _, message in
                client.stop()
                try? message.reply(MachMessage(id: 8))
            }) { right, _, _ in
                let idle = RunLoopSource {}
                client.add(idle)
                let reply = try right.ask(MachMessage(), mode: .default)
                #expect(reply.id == 8)
                #expect(client.run(for: longTimeout) == .stopped)
                idle.invalidate()
            }
        }
    }

    @Test("a late reply is dropped, and never given to the next request", arguments: TestTransport.withName)
    func lateReply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.late) { right, _ in
                for _ in 0..<10 {
                    let error = portError { () throws(PortError) in
                        _ = try right.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: .milliseconds(1))
                    }
                    #expect(error?.code == .replyTimedOut)
                    let reply = try right.ask(MachMessage(id: 2))
                    #expect(reply.id == 2)
                }
            }
        }
    }

    @Test("a request released without a reply notifies its requester at once", arguments: TestTransport.withName)
    func dropped(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.letGo) { right, _ in
                for id in Int32(0)..<3 {
                    #expect(
                        portError { () throws(PortError) in _ = try right.ask(MachMessage(id: id)) }?.code
                            == .replyDropped)
                }
            }
        }
    }

    @Test("a port without a handler drops requests, and the requester learns it", arguments: TestTransport.withName)
    func noHandler(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.none) { right, _ in
                #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .replyDropped)
            }
        }
    }

    @Test(
        "a port that ends while a request is in its queue gives the requester peerDied",
        arguments: TestTransport.allCases)
    func diedWhileQueued(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let requester = runOnThread {
                portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code
            }
            while try port.queueCount == 0 {
                // What a scheduled port does when its sockets are readable.
                try port.receiveFromSockets()
                sched_yield()
            }
            try port.invalidate()
            #expect(try requester.join() == .peerDied)
        }
    }

    @Test(
        "a port that ends before it reads a request from its socket gives the requester peerDied",
        arguments: TestTransport.connected)
    func diedBeforeReading(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let sent = Gate("the request was sent")
            let requester = runOnThread {
                let observer = RunLoopObserver(activities: .beforeWaiting) { _, _ in sent.open() }
                ThreadRunLoop.current.add(observer, to: .portReply)
                defer { observer.invalidate() }
                return portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code
            }
            sent.wait()
            try port.invalidate()
            #expect(try requester.join() == .peerDied)
        }
    }

    @Test(
        "a port that ends while a request is handled, and is not replied to, gives the requester peerDied",
        arguments: TestTransport.withName)
    func diedWhileHandled(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.end) { right, _ in
                #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .peerDied)
            }
        }
    }

    @Test(
        "a handler that invalidates its own port and stops its loop can still reply", arguments: TestTransport.inProcess
    )
    func lastReply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let requester = Box<TestThread<Int32>>()
            let port = try bench.port { port, message in
                port.invalidate()
                ThreadRunLoop.current.stop()
                try? message.reply(MachMessage(id: 77))
            }
            let right = try bench.right(to: port)
            try port.schedule()
            requester.value.withLock { $0 = runOnThread { try right.ask(MachMessage()).id } }
            let result = ThreadRunLoop.current.run(for: longTimeout)
            #expect(result == .stopped || result == .finished)
            #expect(try requester.value.withLock { $0 }?.join() == 77)
            #expect(right.isDead)
        }
    }

    @Test("a reply may be the last thing that a port does before it is gone", arguments: TestTransport.allCases)
    func lastReplyOfFarSide(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.lastReply) { right, port in
                let reply = try right.ask(MachMessage())
                #expect(reply.id == 77)
                #expect(right.isDead)
                let isValid = try port.isValid
                #expect(!isValid)
            }
        }
    }

    @Test("a reply may come later, from another thread", arguments: TestTransport.withName)
    func deferred(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keepRight) { right, port in
                let replier = runOnThread {
                    #expect(try port.lines(2) == ["noReplyRight", "retained 1"])
                    try port.replyRetained(MachMessage(id: 5))
                }
                #expect(try right.ask(MachMessage(id: 1)).id == 5)
                try replier.join()
            }
        }
    }

    @Test(
        "a second reply, and a reply to a message that asks for none, throw noReplyRight",
        arguments: TestTransport.withName)
    func replyTwice(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.replyTwice) { right, port in
                #expect(try right.ask(MachMessage()).id == 1)
                try right.send(MachMessage())
                #expect(try port.lines(4) == ["fine", "noReplyRight", "noReplyRight", "noReplyRight"])
            }
        }
    }

    @Test("threads that share a right each get their own replies", arguments: TestTransport.withName)
    func sharedRight(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.echo) { right, _ in
                let threads = (0..<4).map { thread in
                    runOnThread {
                        var wrong = 0
                        for index in 0..<500 {
                            let id = Int32(thread * 1000 + index)
                            if try right.ask(MachMessage(id: id)).id != id { wrong += 1 }
                        }
                        return wrong
                    }
                }
                for thread in threads {
                    let wrong = try thread.join()
                    #expect(wrong == 0)
                }
            }
        }
    }

    @Test("a request that finds no room throws sendTimedOut, and was not sent", arguments: TestTransport.withName)
    func noRoom(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 2)
            let right = try bench.right(to: port)
            let count = try right.fill(bytes: 1000)
            let error = portError { () throws(PortError) in
                _ = try right.request(MachMessage(id: -1), sendLimit: .zero, replyLimit: longTimeout)
            }
            #expect(error?.code == .sendTimedOut)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
        }
    }
}
