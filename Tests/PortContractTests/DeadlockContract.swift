// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("cycles of requests", .contract) struct DeadlockContract {
    @Test("a request to a port of the own loop, in a mode that does not serve it, is refused: nothing is sent")
    func selfRequest() async throws {
        try await onBench(over: .memory) { bench in
            let port = try bench.port { _, message in try? message.reply(MachMessage(id: 1)) }
            try port.schedule(in: .common)
            let error = portError { () throws(PortError) in _ = try port.makeSendRight().ask(MachMessage()) }
            #expect(error?.code == .wouldDeadlock && error?.delivery == .notSent)
            let sentence = error.map { "\($0)" } ?? ""
            #expect(sentence.contains("It would wait for \(port.localPort.label), which this thread serves."))
            #expect(port.queueCount == 0)
            // In a mode that serves it there is no cycle.
            #expect(try port.makeSendRight().ask(MachMessage(), mode: .default).id == 1)
            port.invalidate()
        }
    }

    /// Ports on loops of their own, each of which asks the next one on its list before it answers.
    ///
    /// - Returns: what the last of them met.
    private func chain(
        _ bench: Bench, of count: Int, closes: Bool, mode: RunLoopMode = .portReply
    ) throws -> (inner: PortError?, outer: PortError?, ports: [MachPort]) {
        let rights = Recorder<SendRight>()
        let inner = Recorder<PortError?>()
        let ports = (0..<count).map { index in
            MachPort { _, message in
                let next = index + 1 < count ? index + 1 : 0
                if index + 1 == count && !closes || message.id == -1 {
                    try? message.reply(MachMessage(id: 42))
                    return
                }
                let isLast = index + 1 == count
                let error = portError { () throws(PortError) in
                    let request = MachMessage(id: isLast ? -1 : 0)
                    let reply = try rights.elements[next].ask(request, mode: mode)
                    try message.reply(MachMessage(id: reply.id))
                }
                if isLast { inner.append(error) }
            }
        }
        for port in ports { rights.append(port.makeSendRight()) }
        let workers = ports.map { _ in Worker() }
        for (port, worker) in zip(ports, workers) { try port.schedule(on: worker.loop) }
        let outer = portError { () throws(PortError) in
            let reply = try rights.elements[0].ask(MachMessage())
            #expect(reply.id == 42)
        }
        for port in ports { port.invalidate() }
        for worker in workers { try worker.end() }
        return (inner.elements.first ?? nil, outer, ports)
    }

    @Test("a request that its port answers before it is queued is no cycle")
    func intercepted() async throws {
        try await onBench(over: .memory) { _ in
            let port = MachPort(queueLimit: 1, handler: nil) { message in
                try? message.reply(MachMessage(id: 9))
                return true
            }
            try port.schedule(in: .common)
            #expect(try port.makeSendRight().ask(MachMessage()).id == 9)
            port.invalidate()
        }
    }

    @Test("loops that ask each other in a circle get an error, and none hangs", arguments: [2, 3, 5])
    func circle(count: Int) async throws {
        try await onBench(over: .memory) { bench in
            let (inner, outer, ports) = try chain(bench, of: count, closes: true)
            #expect(inner?.code == .wouldDeadlock && inner?.delivery == .notSent)
            let sentence = inner.map { "\($0)" } ?? ""
            for port in ports.dropLast() { #expect(sentence.contains(port.localPort.label), "\(sentence)") }
            #expect(sentence.contains("which this thread serves"))
            // The last one released its request, so all before it get an error.
            #expect(outer?.code == .replyDropped)
        }
    }

    @Test("a chain without a circle is no cycle", arguments: [2, 3, 5])
    func open(count: Int) async throws {
        try await onBench(over: .memory) { bench in
            let (inner, outer, _) = try chain(bench, of: count, closes: false)
            #expect(inner == nil && outer == nil)
        }
    }

    @Test("a circle of loops that wait in a mode that serves their ports is no cycle", arguments: [2, 3])
    func servedCircle(count: Int) async throws {
        try await onBench(over: .memory) { bench in
            let (inner, outer, _) = try chain(bench, of: count, closes: true, mode: .default)
            #expect(inner == nil && outer == nil)
        }
    }

    @Test("a port that is in another loop too, or in none, is no part of a cycle")
    func otherReceivers() async throws {
        try await onBench(over: .memory) { bench in
            let worker = Worker()
            let both = MachPort { _, message in try? message.reply(MachMessage(id: 1)) }
            try both.schedule()
            try both.schedule(on: worker.loop)
            #expect(try both.makeSendRight().ask(MachMessage()).id == 1)
            let free = MachPort()
            let receiver = runOnThread { try free.next().reply(MachMessage(id: 2)) }
            #expect(try free.makeSendRight().ask(MachMessage()).id == 2)
            try receiver.join()
            both.invalidate()
            try worker.end()
        }
    }

    @Test("a reply right that another thread holds is no part of a cycle")
    func takenRight() async throws {
        try await onBench(over: .memory) { bench in
            // The server hands the reply right to another thread, then asks the client's port; the client serves it
            // later.
            let (keeper, asked) = (Keeper(), Gate("the server asks back"))
            let mine = MachPort { _, message in try? message.reply(MachMessage(id: 7)) }
            try mine.schedule()
            let back = mine.makeSendRight()
            let answers = Recorder<Int32>()
            try bench.serving({ _, message in
                keeper.keep(message.takeReplyRight())
                asked.open()
                answers.append((try? back.ask(MachMessage()))?.id ?? -1)
            }) { right, _, _ in
                let helper = runOnThread {
                    asked.wait()
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

    @Test("a message that has outlived its handler is no part of a cycle: another thread may answer it")
    func retainedMessage() async throws {
        try await onBench(over: .memory) { bench in
            // The server leaves a request to a helper. Then another request makes it ask the client's port, while the
            // client waits for the helper's answer.
            let (retained, asked) = (Recorder<MachMessage>(), Gate("the server asks back"))
            let mine = MachPort { _, message in try? message.reply(MachMessage(id: 7)) }
            try mine.schedule()
            let back = mine.makeSendRight()
            let answers = Recorder<Int32>()
            try bench.serving({ _, message in
                if message.id == 1 { return retained.append(message) }
                asked.open()
                answers.append((try? back.ask(MachMessage()))?.id ?? -1)
            }) { right, _, _ in
                let helper = runOnThread {
                    retained.waitUntilCount(1)
                    try right.send(MachMessage(id: 2))
                    asked.wait()
                    while answers.count == 0, mine.queueCount == 0 { sched_yield() }
                    try retained.takeAll()[0].reply(MachMessage(id: 3))
                }
                #expect(try right.ask(MachMessage(id: 1)).id == 3)
                try helper.join()
                while answers.count == 0 { ThreadRunLoop.current.run(for: .milliseconds(1)) }
                #expect(answers.elements == [7])
            }
            mine.invalidate()
        }
    }

    @Test("a handler that moved its port to another loop and asks it gets an error: that loop waits for the handler")
    func movedPort() async throws {
        try await onBench(over: .memory) { bench in
            let other = Worker()
            let outcomes = Recorder<PortError?>()
            let port = MachPort { port, message in
                if message.id == 2 { return (try? message.reply(MachMessage(id: 4))) ?? () }
                try? port.move(to: other.loop)
                outcomes.append(
                    portError { () throws(PortError) in _ = try port.makeSendRight().ask(MachMessage(id: 2)) })
            }
            let first = Worker()
            try port.schedule(on: first.loop)
            try port.makeSendRight().send(MachMessage(id: 1))
            let error = try #require(outcomes.waitUntilCount(1).first)
            #expect(error?.code == .wouldDeadlock && error?.delivery == .notSent)
            // The handler is over, and the new loop serves the port.
            #expect(try port.makeSendRight().ask(MachMessage(id: 2)).id == 4)
            port.invalidate()
            try first.end()
            try other.end()
        }
    }

    @Test("of two threads that ask each other at the same time, one is refused and the other answered")
    func atTheSameTime() async throws {
        try await onBench(over: .memory) { bench in
            let (rights, outcomes) = (Recorder<SendRight>(), Recorder<PortError.Code?>())
            let meeting = Meeting()
            let ports = (0..<2).map { index in
                MachPort { _, message in
                    if message.id == 0 { return (try? message.reply(MachMessage())) ?? () }
                    let right = rights.elements[1 - index]
                    meeting.meet(Int(message.id) * 2)
                    let error = portError { () throws(PortError) in _ = try right.ask(MachMessage(id: 0)) }
                    outcomes.append(error?.code)
                }
            }
            for port in ports { rights.append(port.makeSendRight()) }
            let workers = ports.map { _ in Worker() }
            for (port, worker) in zip(ports, workers) { try port.schedule(on: worker.loop) }
            for round in 1...100 {
                for right in rights.elements { try right.send(MachMessage(id: Int32(round))) }
                let seen = outcomes.waitUntilCount(2 * round).suffix(2)
                #expect(seen.count { $0 == .wouldDeadlock } == 1 && seen.contains(nil))
            }
            for port in ports { port.invalidate() }
            for worker in workers { try worker.end() }
        }
    }

    /// A rendezvous of two threads, so that they continue as nearly together as possible.
    private final class Meeting: Sendable {
        private let count = Atomic<Int>(0)

        func meet(_ total: Int) {
            count.add(1, ordering: .acquiringAndReleasing)
            var polls = 0
            while count.load(ordering: .acquiring) < total {
                polls += 1
                if polls % 10_000 == 0 { sched_yield() }
            }
        }
    }

    @Test("many threads that ask many ports meet no cycle that is none")
    func noFalseAlarm() async throws {
        try await onBench(over: .memory) { bench in
            let workers = (0..<4).map { _ in Worker() }
            let ports = workers.map { _ in MachPort { _, message in try? message.reply(MachMessage(id: message.id)) } }
            for (port, worker) in zip(ports, workers) { try port.schedule(on: worker.loop) }
            let threads = (0..<4).map { thread in
                runOnThread {
                    (0..<200).allSatisfy { index in
                        let right = ports[(thread + index) % 4].makeSendRight()
                        return (try? right.ask(MachMessage(id: Int32(index))))?.id == Int32(index)
                    }
                }
            }
            for thread in threads { #expect(try thread.join()) }
            for port in ports { port.invalidate() }
            for worker in workers { try worker.end() }
        }
    }
}

/// Stores a reply right for later.
final class Keeper: Sendable {
    private let right = Mutex<SendOnceRight?>(nil)

    func keep(_ new: consuming SendOnceRight?) {
        var new = new
        right.withLock { $0 = new.take() }
    }

    /// Replies with the right that was stored.
    func reply(_ message: MachMessage) {
        guard let right = right.withLock({ $0.take() }) else { return }
        _ = try? right.send(message)
    }
}
