// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("ports on run loops", .contract) struct SchedulingContract {
    @Test("the handler gets each message on the loop's thread, with the port", arguments: TestTransport.withName)
    func handler(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<(Int32, Bool)>()
            try bench.serving({ port, message in
                seen.append((message.id, ThreadRunLoop.current.currentMode == .default && port.isValid))
            }) { _, port, _ in
                let right = try bench.farSender(to: port)
                for id in Int32(0)..<200 { try right.send(MachMessage(id: id)) }
                let all = seen.waitUntilCount(200)
                #expect(all.map(\.0) == Array(0..<200))
                #expect(all.allSatisfy { $0.1 })
            }
        }
    }

    @Test("messages that came before the port was scheduled are handled after", arguments: TestTransport.withName)
    func scheduledLate(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>()
            let port = try bench.port { port, message in
                seen.append(message.id)
                if message.id == 2 { port.invalidate() }
            }
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<3 { try right.send(MachMessage(id: id)) }
            try port.schedule()
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(seen.elements == [0, 1, 2])
        }
    }

    @Test("a port that is removed from one loop while it is added to another is on the other")
    func handedOver() async throws {
        try await onBench(over: .memory) { _ in
            let (first, second) = (ThreadRunLoop.current, Worker())
            let port = MachPort()
            let progress = Progress()
            let count = 500
            // Keeps the loop that removes the port from ending before the other has the port, but not for long.
            let brake = runOnThread {
                for round in 1...count {
                    progress.begun.wait(for: round)
                    port.localPort.state.withLock { _ in
                        progress.braked.set(round)
                        for _ in 0..<200 where progress.ended.value < round { sched_yield() }
                    }
                }
            }
            let taker = runOnThread {
                for round in 1...count {
                    progress.braked.wait(for: round)
                    progress.taking.set(round)
                    try port.schedule(on: second.loop)
                    progress.ended.set(round)
                }
            }
            var lost = 0
            for round in 1...count {
                try port.schedule(on: first)
                progress.begun.set(round)
                progress.taking.wait(for: round)
                port.unschedule(from: first)
                progress.ended.wait(for: round)
                if port.state.withLock({ $0.source })?.loops.contains(second.loop) != true { lost += 1 }
                port.unschedule(from: second.loop)
            }
            #expect(lost == 0)
            try brake.join()
            try taker.join()
            port.invalidate()
            try second.end()
        }
    }

    /// How far the threads of a test are.
    private final class Progress: Sendable {
        let (begun, braked, taking, ended) = (Mark(), Mark(), Mark(), Mark())

        final class Mark: Sendable {
            private let round = Atomic(0)

            var value: Int { round.load(ordering: .acquiring) }
            func set(_ round: Int) { self.round.store(round, ordering: .releasing) }
            func wait(for round: Int) { while value < round { sched_yield() } }
        }
    }

    @Test("an unscheduled port keeps its messages for later", arguments: TestTransport.withName)
    func unscheduled(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>()
            let port = try bench.port { port, message in
                seen.append(message.id)
                if message.id == 1 { port.unschedule() }
                if message.id == 3 { port.invalidate() }
            }
            let right = try bench.farSender(to: port)
            try port.schedule()
            for id in Int32(0)..<4 { try right.send(MachMessage(id: id)) }
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(seen.elements == [0, 1])
            #expect(port.isValid)
            try ThreadRunLoop.current.add(port)
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(seen.elements == [0, 1, 2, 3])
        }
    }

    @Test("a handler may send to its own port, and nest a run that handles that", arguments: TestTransport.withName)
    func nested(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>()
            let port = try bench.port { port, message in
                seen.append(message.id)
                guard message.id < 4 else { return port.invalidate() }
                _ = try? port.makeSendRight().trySend(MachMessage(id: message.id + 1))
                ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true)
                seen.append(-message.id)
            }
            try bench.farSender(to: port).send(MachMessage(id: 1))
            try port.schedule()
            ThreadRunLoop.current.run(for: longTimeout)
            #expect(seen.elements == [1, 2, 3, 4, -3, -2, -1])
        }
    }

    @Test("a port in a mode is served in that mode only", arguments: TestTransport.withName)
    func modes(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let special = RunLoopMode(rawValue: "special")
            let seen = Recorder<Int32>()
            let port = try bench.port { _, message in seen.append(message.id) }
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            try port.schedule(in: special)
            try bench.farSender(to: port).send(MachMessage(id: 1))
            #expect(ThreadRunLoop.current.run(for: .milliseconds(1)) == .timedOut)
            #expect(seen.count == 0)
            // The first event may be the connection that is accepted.
            while seen.count == 0 {
                ThreadRunLoop.current.run(mode: special, for: longTimeout, returnAfterSourceHandled: true)
            }
            #expect(seen.elements == [1])
            port.invalidate()
            idle.invalidate()
        }
    }

    @Test(
        "a scheduled port lives without other references, until it is unscheduled", arguments: TestTransport.withName)
    func retainedPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>()
            var port: MachPort? = try bench.port { port, message in
                seen.append(message.id)
                if message.id == 1 { ThreadRunLoop.current.remove(port) }
            }
            let right = try bench.farSender(to: #require(port))
            try port?.schedule()
            port = nil
            for id in Int32(0)..<2 {
                #expect(try !right.isDead)
                try right.send(MachMessage(id: id))
                ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true)
                while seen.count <= Int(id) { ThreadRunLoop.current.run(for: .milliseconds(1)) }
            }
            #expect(seen.elements == [0, 1])
            #expect(try right.isDead)
        }
    }

    @Test(
        "a port whose loop's thread has ended is dead for its senders, and its queue bounces",
        arguments: TestTransport.inProcess)
    func loopEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let rights = Box<SendRight>()
            let (made, mayEnd) = (Gate("the port"), Gate("the end of the thread"))
            let thread = runOnThread {
                let port = try bench.port { _, _ in Issue.record("no thread runs this loop") }
                try port.schedule()
                let right = try bench.right(to: port)
                rights.value.withLock { $0 = right }
                made.open()
                mayEnd.wait()
            }
            made.wait()
            let right = try #require(rights.value.withLock { $0 })
            let requester = runOnThread {
                let waits = Gate("the request is under way")
                waitsNow(in: .portReply, waits)
                let other = runOnThread {
                    waits.wait()
                    mayEnd.open()
                }
                defer { _ = try? other.join() }
                return portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code
            }
            #expect(try requester.join() == .peerDied)
            try thread.join()
            #expect(right.isDead)
            #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code == .deadName)
        }
    }

    @Test(
        "scheduling on a loop that has ended leaks nothing, and the port can go elsewhere",
        arguments: TestTransport.withName)
    func endedLoop(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let loop = try onNewThread { ThreadRunLoop.current }
            weak var gone: MachPort?
            do {
                let port = try bench.port { port, _ in port.invalidate() }
                gone = port
                try port.schedule(on: loop)
                #expect(port.isValid)
                try port.schedule()
                try bench.farSender(to: port).send(MachMessage())
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
                let other = try bench.port()
                try other.schedule(on: loop)
            }
            #expect(gone == nil)
        }
    }

    @Test("a port on two loops gives each message to one of them", arguments: TestTransport.withName)
    func twoLoops(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>()
            let port = try bench.port { _, message in seen.append(message.id) }
            let workers = [Worker(), Worker()]
            for worker in workers { try port.schedule(on: worker.loop) }
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<500 { try right.send(MachMessage(id: id)) }
            #expect(seen.waitUntilCount(500).sorted() == Array(0..<500))
            port.invalidate()
            for worker in workers { try worker.end() }
            #expect(seen.count == 500)
        }
    }

    @Test(
        "a port that gets its address while it is scheduled is reached there",
        arguments: TestTransport.connected)
    func addressedLater(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Gate("a message by socket")
            let port = MachPort { port, _ in
                seen.open()
                port.invalidate()
            }
            let worker = Worker()
            try port.schedule(on: worker.loop)
            try bench.farSender(to: port).send(MachMessage())
            seen.wait()
            try worker.end()
        }
    }
}
