// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("cycles of requests over connections", .contract) struct ProbeContract {
    @Test("two threads that ask each other: one is refused, and the other answered", arguments: TestTransport.allCases)
    func two(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port { _, message in try? message.reply(MachMessage(id: 7)) }
            try port.schedule()
            try bench.serving(.askOther, handingOnTo: port.makeSendRight()) { right, _ in
                for _ in 0..<3 { expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) }) }
            }
            port.invalidate()
        }
    }

    @Test("three processes that ask each other in a circle: one is refused, and the others are answered")
    func threeProcesses() async throws {
        try await onBench(over: .process) { bench in
            let names = bench.directory.path + "-third"
            let third = try ChildProcess(builtProduct("port-test-peer"), ["far", names, "third", bench.directory.path])
            try third.beside(endsAs: .exited(0), "the third process") {
                try #require(try third.nextLine() == "ready")
                let orders = try PortNameServer(directory: names).lookUp("third")
                let link = FarLink { order in try Parcel(unpacking: orders.ask(order.packed)) }
                let other = Bench(transport: .process, directory: bench.directory, far: link)
                let port = try bench.port { _, message in try? message.reply(MachMessage(id: 7)) }
                try port.schedule()
                try other.serving(.askOther, handingOnTo: port.makeSendRight()) { last, _ in
                    try bench.serving(.askOther, handingOnTo: last) { right, _ in
                        expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) })
                    }
                }
                port.invalidate()
            }
        }
    }

    @Test("a circle of waits in memory and over connections is found as well", arguments: TestTransport.connected)
    func mixed(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port { _, message in try? message.reply(MachMessage(id: 7)) }
            try port.schedule()
            try bench.serving(.askOther, handingOnTo: port.makeSendRight()) { far, _ in
                let between = MachPort { _, message in
                    let id = (try? far.ask(MachMessage(id: 2)))?.id ?? -1
                    try? message.reply(MachMessage(id: id))
                }
                let worker = Worker()
                try between.schedule(on: worker.loop)
                expectOneRefused(try requestOutcome { try between.makeSendRight().ask(MachMessage(id: 1)) })
                between.invalidate()
                try worker.end()
            }
            port.invalidate()
        }
    }

    @Test(
        "of a circle of threads exactly one is refused; one that only waits for the circle is not",
        arguments: [2, 3, 5], [TestTransport.socket, .ring])
    func tail(count: Int, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (rights, errors) = (Recorder<SendRight>(), Recorder<PortError?>())
            let ports = try (0..<count).map { index in
                try bench.port { _, message in
                    // The first asks the second, and so on; the last closes the circle, and is answered if that is
                    // open.
                    if message.id == 0 { return (try? message.reply(MachMessage(id: 42))) ?? () }
                    let next = (index + 1) % count
                    let request = MachMessage(id: index + 1 == count ? 0 : 1)
                    let error = portError { () throws(PortError) in
                        let reply = try rights.elements[next].ask(request)
                        try message.reply(MachMessage(id: reply.id))
                    }
                    errors.append(error)
                }
            }
            let workers = ports.map { _ in Worker() }
            for (port, worker) in zip(ports, workers) { try port.schedule(on: worker.loop) }
            for port in ports { rights.append(try bench.right(to: port)) }
            let first = runOnThread { try requestOutcome { try rights.elements[0].ask(MachMessage(id: 1)) } }
            let tail = runOnThread { try rights.elements[0].ask(MachMessage(id: 0)).id }
            // The first waits for the circle as well: it gets what its handler met.
            let met = try first.join()
            #expect(met == .reply(42) || met == .error(.replyDropped))
            #expect(try tail.join() == 42)
            #expect(errors.waitUntilCount(count).count { $0?.code == .wouldDeadlock } == 1)
            for port in ports { port.invalidate() }
            for worker in workers { try worker.end() }
        }
    }

    @Test(
        "a request that was refused was sent, and its receiver finds it cancelled", arguments: TestTransport.inProcess)
    func cancelled(over transport: TestTransport) async throws {
        if transport == .memory { return }
        try await onBench(over: transport) { bench in
            let refused = Recorder<PortError?>()
            let states = Recorder<Bool>()
            let port = try bench.port { _, message in
                states.append(message.isCancelled)
                try? message.reply(MachMessage(id: 7))
            }
            try port.schedule()
            let back = try bench.right(to: port)
            try bench.serving({ _, message in
                refused.append(portError { () throws(PortError) in _ = try back.ask(MachMessage(id: 2)) })
                try? message.reply(MachMessage(id: 3))
            }) { right, _, _ in
                let met = try requestOutcome { try right.ask(MachMessage(id: 1)) }
                ThreadRunLoop.current.run(for: .zero)
                while states.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                if met == .reply(3) {
                    let error = try #require(refused.elements.first ?? nil)
                    #expect(error.code == .wouldDeadlock && error.delivery == .unknown)
                    #expect("\(error)".contains("only threads that wait for each other"))
                    #expect(states.elements == [true])
                } else {
                    #expect(met == .error(.wouldDeadlock) && states.elements == [false])
                }
            }
            port.invalidate()
        }
    }

    @Test(
        "a circle is found by way of a port whose clients only its own thread accepts",
        arguments: TestTransport.connected)
    func ownPolicy(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(acceptsInBackground: false) { _, message in
                try? message.reply(MachMessage(id: 7))
            }
            try port.schedule()
            try bench.serving(.askOther, handingOnTo: port.makeSendRight()) { right, _ in
                // The far side is accepted.
                let reply = try right.ask(MachMessage(id: 1), mode: .default)
                #expect(reply.id == 7)
                expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) })
            }
            port.invalidate()
        }
    }

    @Test(
        "a request that found the queue full is followed as well, and the queue exceeds its limit by that one",
        arguments: [TestTransport.socket, .ring])
    func fullQueue(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 2) { _, message in
                if message.expectsReply { try? message.reply(MachMessage(id: 7)) }
            }
            try port.schedule()
            let back = try bench.right(to: port)
            let answers = Recorder<RequestOutcome>()
            try bench.serving({ _, message in
                let met = try? requestOutcome { try back.ask(MachMessage(id: 2)) }
                if let met { answers.append(met) }
                try? message.reply(MachMessage(id: met == .error(.wouldDeadlock) ? -1 : 3))
            }) { right, _, _ in
                for _ in 0..<2 { try port.makeSendRight().send(MachMessage(id: 1)) }
                let met = try requestOutcome { try right.ask(MachMessage(id: 1)) }
                #expect(port.statistics.queueHighWaterMark == 3)
                expectOneRefused(met)
                // One of the two was refused, the other answered.
                while answers.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(answers.elements == [met == .reply(-1) ? .error(.wouldDeadlock) : .reply(7)])
            }
            port.invalidate()
        }
    }

    @Test("a request to another process that found the queue full there is followed as well")
    func fullQueueOfProcess() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.port(queueLimit: 1) { _, message in
                if message.expectsReply { try? message.reply(MachMessage(id: 7)) }
            }
            try port.schedule()
            try bench.serving(.askOther, handingOnTo: port.makeSendRight()) { right, _ in
                try port.makeSendRight().send(MachMessage(id: 1))
                expectOneRefused(try requestOutcome { try right.ask(MachMessage(id: 1)) })
                while port.queueCount > 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
            }
            port.invalidate()
        }
    }

    // MARK: What is no circle

    @Test(
        "a server that takes its time is no part of a cycle, however often it is asked",
        arguments: TestTransport.allCases)
    func slowServer(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let probes = ProbeObserver()
            // The far side waits for a thread of this process that runs.
            let slow = try bench.port { _, message in
                probes.waitUntilStarted(2)
                try? message.reply(MachMessage(id: 9))
            }
            let worker = Worker()
            try slow.schedule(on: worker.loop)
            try bench.serving(.askOther, handingOnTo: slow.makeSendRight()) { right, _ in
                probes.observe(.current)
                let reply = try right.ask(MachMessage(id: 1))
                #expect(reply.id == 9)
                probes.end()
            }
            slow.invalidate()
            try worker.end()
        }
    }

    @Test("a wait in a mode that serves the port is no part of a cycle", arguments: TestTransport.allCases)
    func served(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let probes = ProbeObserver()
            let port = try bench.port { _, message in try? message.reply(MachMessage(id: 7)) }
            try port.schedule(in: .common)
            let other = Worker()
            let asking = try bench.port { _, message in
                probes.observe(.current)
                let id = (try? bench.right(to: port).ask(MachMessage(id: 2)))?.id ?? -1
                probes.end()
                try? message.reply(MachMessage(id: id))
            }
            try asking.schedule(on: other.loop)
            try bench.serving(.askOther, handingOnTo: asking.makeSendRight()) { right, _ in
                // The first message of the default mode is handled when the probes have found the wait.
                ThreadRunLoop.current.perform(in: [.default]) { probes.waitUntilStarted(2) }
                let reply = try right.ask(MachMessage(id: 1), mode: .default)
                #expect(reply.id == 7)
            }
            port.invalidate()
            asking.invalidate()
            try other.end()
        }
    }

    @Test("a reply right that another thread holds is no part of a cycle", arguments: [TestTransport.socket, .ring])
    func takenRight(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (keeper, probes, answers) = (Keeper(), ProbeObserver(), Recorder<Int32>())
            let mine = try bench.port { _, message in try? message.reply(MachMessage(id: 7)) }
            try mine.schedule()
            let back = try bench.right(to: mine)
            try bench.serving({ _, message in
                keeper.keep(message.takeReplyRight())
                probes.observe(.current)
                answers.append((try? back.ask(MachMessage()))?.id ?? -1)
                probes.end()
            }) { right, _, _ in
                let helper = runOnThread {
                    probes.waitUntilStarted(2)
                    keeper.reply(MachMessage(id: 3))
                }
                #expect(try right.ask(MachMessage()).id == 3)
                try helper.join()
                while answers.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(answers.elements == [7])
            }
            mine.invalidate()
        }
    }

    @Test("a circle that ends by a time limit before it is found refuses none", arguments: TestTransport.connected)
    func timeLimit(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port { _, message in try? message.reply(MachMessage(id: 7)) }
            try port.schedule()
            try bench.serving(.askOther, handingOnTo: port.makeSendRight()) { right, far in
                let error = portError { () throws(PortError) in
                    _ = try right.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: .milliseconds(20))
                }
                #expect(error?.code == .replyTimedOut)
                // Its thread serves the port again: the far side is answered, and so serves its own.
                let probe = runOnThread { try right.ask(MachMessage(id: 5)).id }
                while !probe.hasEnded { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(try probe.join() == 7)
                try far.settle()
            }
            port.invalidate()
        }
    }
}

/// What a request met.
enum RequestOutcome: Equatable, Sendable {
    case reply(Int32)
    case error(PortError.Code)
}

func requestOutcome(_ body: () throws -> MachMessage) throws -> RequestOutcome {
    do {
        return .reply(try body().id)
    } catch let error as PortError {
        return .error(error.code)
    }
}

/// Either this thread was refused, or another, which has replied so.
func expectOneRefused(_ outcome: RequestOutcome, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(outcome == .reply(-1) || outcome == .error(.wouldDeadlock), sourceLocation: sourceLocation)
    // What waits for this thread is answered before the next request.
    while ThreadRunLoop.current.run(for: .zero) == .handledSource {}
}

/// Counts the probes of the wait of a loop's thread: its loop sleeps anew after each.
private final class ProbeObserver: Sendable {
    private let sleeps = Recorder<Void>()
    private let observer: RunLoopObserver

    init() {
        observer = RunLoopObserver(activities: .beforeWaiting) { [sleeps] _, _ in sleeps.append(()) }
    }

    func observe(_ loop: ThreadRunLoop) { loop.add(observer, to: .portReply) }
    func end() { observer.invalidate() }
    func waitUntilStarted(_ count: Int) { _ = sleeps.waitUntilCount(count + 1) }
}
