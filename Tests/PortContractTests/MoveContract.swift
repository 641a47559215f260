// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("receive rights that move", .contract) struct MoveContract {
    @Test("a moved port is handled on the new loop, its queue too, in order", arguments: TestTransport.withName)
    func move(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (first, second) = (Worker("first"), Worker("second"))
            let seen = Recorder<(Int32, Bool)>("messages")
            let port = try bench.port { _, message in seen.append((message.id, second.loop.isCurrent)) }
            let right = try bench.farSender(to: port)
            try port.schedule(on: first.loop)
            try port.schedule(on: first.loop, in: RunLoopMode(rawValue: "another"))
            for id in Int32(0)..<10 { try right.send(MachMessage(id: id)) }
            seen.waitUntilCount(10)
            try first.perform {
                // What comes while the loop is busy is the queue that moves.
                for id in Int32(10)..<20 { try right.send(MachMessage(id: id)) }
                try port.move(to: second.loop)
            }
            for id in Int32(20)..<30 { try right.send(MachMessage(id: id)) }
            let all = seen.waitUntilCount(30)
            #expect(all.map(\.0) == Array(0..<30))
            #expect(all.map(\.1) == (0..<30).map { $0 >= 10 })
            try first.end()
            #expect(port.isValid)
            try right.send(MachMessage(id: 30))
            #expect(seen.waitUntilCount(31).last?.0 == 30)
            port.invalidate()
            try second.end()
        }
    }

    @Test(
        "the new loop begins when the handler under way is over, also one that moves the port itself",
        arguments: TestTransport.withName, [false, true])
    func handlerUnderWay(over transport: TestTransport, movesItself: Bool) async throws {
        try await onBench(over: transport) { bench in
            let (first, second) = (Worker("first"), Worker("second"))
            let (begun, mayEnd) = (Gate("the handler"), Gate("the end of the handler"))
            let seen = Recorder<Int32>("messages")
            let port = try bench.port(queueLimit: 2) { port, message in
                if message.id == 0 {
                    if movesItself { try? port.move(to: second.loop) }
                    begun.open()
                    mayEnd.wait()
                }
                seen.append(message.id)
            }
            try port.schedule(on: first.loop)
            let right = try bench.farSender(to: port)
            try right.send(MachMessage(id: 0))
            begun.wait()
            if !movesItself { try port.move(to: second.loop) }
            for id in Int32(1)..<3 { try right.send(MachMessage(id: id)) }
            for _ in 0..<20 { try second.perform {} }
            #expect(seen.count == 0)
            mayEnd.open()
            #expect(seen.waitUntilCount(3) == [0, 1, 2])
            port.invalidate()
            try first.end()
            try second.end()
        }
    }

    @Test(
        "while a port moves to and fro nothing is lost, doubled, out of order or handled on two loops",
        arguments: TestTransport.withName)
    func toAndFro(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let workers = [Worker("first"), Worker("second"), Worker("third")]
            let (seen, busy, overlaps) = (Recorder<Int32>("messages"), Counter(), Counter())
            let port = try bench.port { port, message in
                if busy.increment() > 1 { overlaps.increment() }
                seen.append(message.id)
                if message.id % 7 == 0 { try? port.move(to: workers[Int(message.id) % 3].loop) }
                busy.increment(by: -1)
            }
            try port.schedule(on: workers[0].loop)
            let right = try bench.farSender(to: port)
            let done = Gate("the sender's end")
            let movers = (0..<2).map { mover in
                runOnThread {
                    var target = mover
                    while !done.isOpen {
                        try port.move(to: workers[target % 3].loop)
                        target += 1
                    }
                }
            }
            for id in Int32(0)..<300 { try right.send(MachMessage(id: id)) }
            #expect(seen.waitUntilCount(300) == Array(0..<300))
            done.open()
            for mover in movers { try mover.join() }
            #expect(overlaps.value == 0)
            port.invalidate()
            for worker in workers { try worker.end() }
            #expect(seen.count == 300)
        }
    }

    @Test("a port that no loop has any more can be received from by another thread", arguments: TestTransport.withName)
    func toThread(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let worker = Worker()
            let seen = Counter()
            let port = try bench.port { _, _ in seen.increment() }
            let right = try bench.farSender(to: port)
            try port.schedule(on: worker.loop)
            port.unscheduleEverywhere()
            for id in Int32(0)..<5 { try right.send(MachMessage(id: id)) }
            #expect(try onNewThread { try (0..<5).map { _ in try port.next().id } } == [0, 1, 2, 3, 4])
            try worker.end()
            #expect(seen.value == 0)
            // And it may go back to a loop.
            try port.schedule()
            try right.send(MachMessage())
            while seen.value == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
            port.invalidate()
        }
    }

    @Test("moving a dead port, or to a loop that has ended", arguments: TestTransport.withName)
    func impossible(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let ended = try onNewThread { ThreadRunLoop.current }
            let port = try bench.port { port, _ in port.invalidate() }
            let right = try bench.farSender(to: port)
            try port.schedule()
            try port.move(to: ended)
            try right.send(MachMessage())
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(port.isValid)
            try port.move(to: .current)
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(!port.isValid)
            #expect(portError { () throws(PortError) in try port.move(to: .current) }?.code == .invalidPort)
        }
    }

    @Test("a moved port is released like a scheduled one", arguments: TestTransport.inProcess)
    func released(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let worker = Worker()
            weak var gone: MachPort?
            do {
                let port = try bench.port()
                gone = port
                try port.schedule()
                try port.move(to: worker.loop)
                port.unscheduleEverywhere()
            }
            // The pass in which the worker has checked the port's source may still be running.
            try worker.perform {}
            #expect(gone == nil)
            do {
                let port = try bench.port()
                gone = port
                try port.move(to: worker.loop)
            }
            #expect(gone != nil)
            try worker.end()
            #expect(gone == nil)
        }
    }

    @Test("a receiver inside a message that is queued on a receiver brings its queue along")
    func receiverInReceiver() async throws {
        try await onBench(over: .memory) { bench in
            let outer = try bench.port()
            let innerRight: SendRight
            do {
                let (middle, inner) = (try bench.port(), try bench.port())
                innerRight = inner.makeSendRight()
                try innerRight.send(MachMessage(id: 1))
                try middle.makeSendRight().send(MachMessage(components: [.receiveRight(inner)]))
                try outer.makeSendRight().send(MachMessage(components: [.receiveRight(middle)]))
            }
            try innerRight.send(MachMessage(id: 2))
            let middle = try #require(try outer.next().receiveRights.first)
            let inner = try #require(try middle.next().receiveRights.first)
            #expect(innerRight == inner.makeSendRight())
            #expect(try inner.next().id == 1)
            #expect(try inner.next().id == 2)
        }
    }

    @Test("a receive right whose message is never read ends, with its queue")
    func undelivered() async throws {
        try await onBench(over: .memory) { bench in
            let outer = try bench.port()
            let right: SendRight
            do {
                let inner = try bench.port()
                right = inner.makeSendRight()
                try outer.makeSendRight().send(MachMessage(components: [.receiveRight(inner)]))
            }
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code }
            right.destinationQueueIsFilled()
            outer.invalidate()
            #expect(try requester.join() == .peerDied)
            #expect(right.isDead)
        }
    }

    @Test(
        "a port that others hold outlives the thread of its loop, and keeps its queue for another loop",
        arguments: TestTransport.withName)
    func threadEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>("messages")
            let port = try bench.port { _, message in seen.append(message.id) }
            let right = try bench.farSender(to: port)
            try onNewThread {
                try port.schedule()
                for id in Int32(0)..<3 { try right.send(MachMessage(id: id)) }
            }
            #expect(port.isValid)
            try right.send(MachMessage(id: 3))
            let worker = Worker()
            try port.schedule(on: worker.loop)
            #expect(seen.waitUntilCount(4) == [0, 1, 2, 3])
            port.invalidate()
            try worker.end()
        }
    }

    @Test("a port on two loops is still served when one loop's thread ends", arguments: TestTransport.withName)
    func oneOfTwoThreadsEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let seen = Recorder<Int32>("messages")
            let port = try bench.port { _, message in seen.append(message.id) }
            let (first, second) = (Worker("first"), Worker("second"))
            try port.schedule(on: first.loop)
            try port.schedule(on: second.loop)
            try first.end()
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<10 { try right.send(MachMessage(id: id)) }
            #expect(seen.waitUntilCount(10) == Array(0..<10))
            port.invalidate()
            try second.end()
        }
    }
}

extension SendRight {
    /// Waits until a message is queued at the right's port, which is of this process.
    func destinationQueueIsFilled() {
        let deadline = Watchdog.deadline
        while (destination as? LocalPort)?.hasMessage == false {
            if .now > deadline { return Watchdog.expired("a message in the queue") }
        }
    }
}
