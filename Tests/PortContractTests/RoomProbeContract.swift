// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A request that was not sent, because the port's queue is full, is followed as one that was.
@Suite("cycles of requests that wait for room", .contract) struct RoomProbeContract {
    private static let handler: MachPort.Handler = { _, message in
        if message.expectsReply { try? message.reply(MachMessage(id: 7)) }
    }

    /// Serves what waits for this thread.
    private func drain(_ port: MachPort) {
        while port.queueCount > 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
    }

    @Test(
        "a request that waits for room is refused, and was not sent; or another one of the circle is",
        arguments: [TestTransport.socket, .ring], [1, 4])
    func unsent(over transport: TestTransport, limit: Int) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: limit, Self.handler)
            try port.schedule()
            let back = try bench.right(to: port)
            let errors = Recorder<PortError?>()
            try bench.serving({ _, message in
                // It has used up what it was granted.
                let count = try? back.fill()
                #expect(count == Int32(limit))
                let error = portError { () throws(PortError) in _ = try back.ask(MachMessage(id: 2)) }
                errors.append(error)
                try? message.reply(MachMessage(id: error?.code == .wouldDeadlock ? -1 : 3))
            }) { right, _, _ in
                let met = try requestOutcome { try right.ask(MachMessage(id: 1)) }
                #expect(port.queueHighWaterMark == limit)
                expectOneRefused(met)
                while errors.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                let error = errors.elements[0]
                #expect((error?.code == .wouldDeadlock) == (met == .reply(-1)))
                if let error {
                    #expect(error.delivery == .notSent && "\(error)".contains("only threads that wait for each other"))
                }
                drain(port)
                // What was refused has taken no room.
                #expect(try back.ask(MachMessage(id: 3), mode: .default).id == 7)
            }
            port.invalidate()
        }
    }

    @Test("a request to another process that waits for room there is followed", arguments: [1, 4])
    func process(limit: Int) async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: limit, Self.handler)
            try port.schedule()
            let sender = try bench.farSender(to: port)
            #expect(try sender.fill() == limit)
            try bench.serving(.askOther, handingOnTo: port.makeSendRight()) { right, _ in
                expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) })
                drain(port)
            }
            withExtendedLifetime(sender) {}
            port.invalidate()
        }
    }

    @Test("two processes whose queues are full, and that ask each other, go on", arguments: [1, 3])
    func bothFull(limit: Int) async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: limit, Self.handler)
            try port.schedule()
            let sender = try bench.farSender(to: port)
            #expect(try sender.fill() == limit)
            try bench.serving(queueLimit: limit, .askOther, handingOnTo: port.makeSendRight()) { right, far in
                // Its thread asks back, and waits for room.
                try right.send(MachMessage(id: 1))
                #expect(try far.lines(1) == ["asks"])
                #expect(try right.fill() == limit)
                expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) })
                // Its handler is called for all that were sent before.
                let last = runOnThread { try right.ask(MachMessage(id: 1)).id }
                while !last.hasEnded { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(try last.join() == 7)
            }
            withExtendedLifetime(sender) {}
            port.invalidate()
        }
    }

    @Test("three processes in a circle, of which one waits for room, go on")
    func threeProcesses() async throws {
        try await onBench(over: .process) { bench in
            let names = bench.directory.path + "-third"
            let third = try ChildProcess(builtProduct("port-test-peer"), ["far", names, "third", bench.directory.path])
            try third.beside(endsAs: .exited(0), "the third process") {
                try #require(try third.nextLine() == "ready")
                let orders = try PortNameServer(directory: names).lookUp("third")
                let link = FarLink { order in try Parcel(unpacking: orders.ask(order.packed)) }
                let other = Bench(transport: .process, directory: bench.directory, far: link)
                let port = try bench.port(queueLimit: 1, Self.handler)
                try port.schedule()
                let sender = try other.farSender(to: port)
                #expect(try sender.fill() == 1)
                try other.serving(.askOther, handingOnTo: port.makeSendRight()) { last, _ in
                    try bench.serving(.askOther, handingOnTo: last) { right, _ in
                        expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) })
                        drain(port)
                    }
                }
                withExtendedLifetime(sender) {}
                port.invalidate()
            }
        }
    }

    @Test(
        "a request that waits behind a sender that waits for room is refused alone",
        arguments: [TestTransport.socket, .ring])
    func behindSender(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 1, Self.handler)
            try port.schedule()
            let back = try bench.right(to: port)
            let (errors, senders) = (Recorder<PortError?>(), Recorder<TestThread<Void>>())
            try bench.serving({ _, message in
                _ = try? back.fill()
                senders.append(runOnThread { try back.send(MachMessage(id: 9), within: longTimeout) })
                (back.destination as? RemotePort)?.connection?.sender.credit.line.waitUntilHolderBlocks()
                let error = portError { () throws(PortError) in _ = try back.ask(MachMessage(id: 2)) }
                errors.append(error)
                try? message.reply(MachMessage(id: error?.code == .wouldDeadlock ? -1 : 3))
            }) { right, _, _ in
                let met = try requestOutcome { try right.ask(MachMessage(id: 1)) }
                expectOneRefused(met)
                while errors.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                if let error = errors.elements[0] { #expect(error.delivery == .notSent) }
                while !senders.elements[0].hasEnded { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                try senders.elements[0].join()
                drain(port)
            }
            port.invalidate()
        }
    }

    @Test(
        "a circle in which a request waits for room in memory, and others over connections, is found",
        arguments: [TestTransport.socket, .ring])
    func mixed(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(Self.handler)
            try port.schedule()
            let back = try bench.right(to: port)
            let (begun, outcomes) = (Recorder<Void>(), Recorder<RequestOutcome>())
            try bench.serving({ _, message in
                begun.append(())
                if message.id == 0 { return (try? message.reply(MachMessage(id: 5))) ?? () }
                if let met = try? requestOutcome({ try back.ask(MachMessage(id: 2)) }) { outcomes.append(met) }
                try? message.reply(MachMessage(id: 4))
            }) { far, _, _ in
                let between = MachPort(queueLimit: 1) { _, message in
                    let request = MachMessage(id: message.id)
                    if let met = try? requestOutcome({ try far.ask(request) }) { outcomes.append(met) }
                    if message.expectsReply { try? message.reply(MachMessage(id: 8)) }
                }
                let worker = Worker()
                try between.schedule(on: worker.loop)
                let near = between.makeSendRight()
                try near.send(MachMessage(id: 1))
                begun.waitUntilCount(1)
                try near.send(MachMessage(id: 0))
                let error = portError { () throws(PortError) in
                    let reply = try near.ask(MachMessage(id: 0))
                    #expect(reply.id == 8)
                }
                if let error { #expect(error.code == .wouldDeadlock) }
                // The handler of the port between was called for two messages, and the request if it was sent.
                let count = error?.delivery == .notSent ? 3 : 4
                while outcomes.count < count { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(error != nil || outcomes.elements.contains(.error(.wouldDeadlock)))
                between.invalidate()
                try worker.end()
            }
            port.invalidate()
        }
    }

    // MARK: What is no circle

    @Test(
        "a full queue that a thread serves in the mode in which it waits is no part of a cycle",
        arguments: [TestTransport.socket, .ring], [1, 4])
    func served(over transport: TestTransport, limit: Int) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: limit, Self.handler)
            try port.schedule()
            let back = try bench.right(to: port)
            let (loops, outcomes) = (Recorder<ThreadRunLoop>(), Recorder<RequestOutcome>())
            try bench.serving({ _, message in
                _ = try? back.fill()
                loops.append(.current)
                if let met = try? requestOutcome({ try back.ask(MachMessage(id: 2)) }) { outcomes.append(met) }
                try? message.reply(MachMessage(id: 3))
            }) { right, _, _ in
                // The first message of the default mode is handled when probes have followed the wait.
                ThreadRunLoop.current.perform(in: [.default]) {
                    waitUntilFollowed(loops.waitUntilCount(1)[0])
                }
                let reply = try right.ask(MachMessage(id: 1), mode: .default)
                #expect(reply.id == 3)
                #expect(outcomes.elements == [.reply(7)])
                drain(port)
            }
            port.invalidate()
        }
    }

    @Test(
        "a request that gets room when the circle ends by a time limit is answered, and none is refused",
        arguments: [TestTransport.socket, .ring])
    func lastMoment(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 1, Self.handler)
            try port.schedule()
            let back = try bench.right(to: port)
            let outcomes = Recorder<RequestOutcome>()
            try bench.serving({ _, message in
                _ = try? back.fill()
                if let met = try? requestOutcome({ try back.ask(MachMessage(id: 2)) }) { outcomes.append(met) }
                try? message.reply(MachMessage(id: 3))
            }) { right, _, _ in
                let error = portError { () throws(PortError) in
                    _ = try right.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: .milliseconds(50))
                }
                #expect(error?.code == .replyTimedOut)
                while outcomes.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(outcomes.elements == [.reply(7)])
            }
            port.invalidate()
        }
    }

    @Test(
        "a request whose time for room is up is not refused later, nor is the next one",
        arguments: [TestTransport.socket, .ring])
    func timeIsUp(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 1)
            let right = try bench.right(to: port)
            _ = try right.fill()
            for _ in 0..<3 {
                let error = portError { () throws(PortError) in
                    _ = try right.request(MachMessage(id: 1), sendLimit: .milliseconds(150), replyLimit: longTimeout)
                }
                #expect(error?.code == .sendTimedOut && error?.delivery == .notSent)
                #expect(WaitGraph.wait(of: .current) == nil)
            }
            let requester = runOnThread { try right.ask(MachMessage(id: 2)).id }
            while try port.next().id != 2 {}
            port.invalidate()
            #expect(throws: PortError.self) { try requester.join() }
        }
    }
}

/// Waits until probes follow the wait of a loop's thread.
private func waitUntilFollowed(_ loop: ThreadRunLoop) {
    let deadline = Watchdog.deadline
    while WaitGraph.wait(of: loop) == nil {
        if .now >= deadline { return Watchdog.expired("no probe has started") }
        yieldThread()
    }
}
