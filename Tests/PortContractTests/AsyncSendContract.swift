// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("requests of tasks that wait for room", .tasks) struct AsyncSendContract {
    @Test(
        "requests that wait for room hold no thread, and are served in their order", arguments: TestTransport.withName)
    func noThreads(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            // The far side is asked for each message that fills the way: of large ones there are fewer.
            let bytes = [UInt8](repeating: 1, count: 3000)
            let count = try right.fill(bytes: bytes.count)
            let threads = threadCount()
            let replies = Recorder<Int32>()
            for id in Int32(1)...100 {
                let message = MachMessage(id: -id, bytes: bytes)
                Task { replies.append(try await right.request(message, sendLimit: longTimeout).id) }
                try right.waitForSenders(Int(id))
            }
            // The pool of tasks has about two threads, however many tasks wait.
            #expect(threadCount() < threads + 20)
            for id in 0..<count { #expect(try port.next().id == id) }
            for id in Int32(1)...100 {
                let message = try port.next()
                #expect(message.id == -id)
                try message.reply(MachMessage(id: id))
            }
            #expect(Set(replies.waitUntilCount(100)) == Set(1...100))
        }
    }

    @Test("a task that is cancelled while it waits for room sends nothing", arguments: TestTransport.withName)
    func cancelled(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let late = MachMessage(id: -1, bytes: [UInt8](repeating: 1, count: 3000))
            let count = try right.fill(bytes: late.bytes.count)
            let outcome = Recorder<PortError?>()
            let tasks = try (1...3).map { number in
                let task = Task { outcome.append(await failure(of: right, late)) }
                try right.waitForSenders(number)
                return task
            }
            // The first of them waits for room, the others behind it.
            for (index, task) in tasks.enumerated() {
                task.cancel()
                let error = outcome.waitUntilCount(index + 1).last ?? nil
                #expect(error?.code == .cancelled && error?.delivery == .notSent)
            }
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
            try right.send(MachMessage(id: 5))
            #expect(try port.next().id == 5)
        }
    }

    @Test("a request that waits for room learns that the port has ended", arguments: TestTransport.allCases)
    func ended(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            _ = try right.fill()
            let outcome = Recorder<PortError?>()
            for number in 1...2 {
                Task { outcome.append(await failure(of: right, MachMessage(id: -1))) }
                try right.waitForSenders(number)
            }
            try port.invalidate()
            #expect(outcome.waitUntilCount(2).map { $0?.code } == [.deadName, .deadName])
        }
    }

    @Test(
        "a large message of a task goes in pieces, as there is room; one that is cancelled meanwhile leaves no trace",
        arguments: [TestTransport.socket, .ring])
    func large(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            // No thread reads what is sent to it unless it polls.
            let port = try bench.port(acceptsInBackground: false)
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            for id in Int32(0)..<3 {
                let cancelled = Task { outcome.append(await failure(of: right, large(-1))) }
                try right.waitForSenders(1)
                cancelled.cancel()
                #expect(outcome.waitUntilCount(Int(id) + 1).last??.code == .cancelled)
                let sizes = Recorder<Int>()
                Task { sizes.append(try await right.request(large(id), sendLimit: longTimeout).bytes.count) }
                let message = try port.next()
                #expect(message.id == id && message.bytes == pattern(4 << 20))
                try message.reply(MachMessage(bytes: pattern(1_000)))
                #expect(sizes.waitUntilCount(1) == [1_000])
            }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    private func large(_ id: Int32) -> MachMessage { MachMessage(id: id, bytes: pattern(4 << 20)) }

    @Test(
        "with many tasks, cancellations and limits each request is either sent once or not at all", .seeded,
        arguments: TestTransport.inProcess)
    func stress(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 2)
            let count = 300
            let rights = try (0..<3).map { _ in try bench.right(to: port) }
            let outcomes = Recorder<(id: Int32, error: PortError?)>()
            let ended = Gate("the end of all requests")
            let receiver = runOnThread {
                var ids: [Int32] = []
                while true {
                    let isLast = ended.isOpen
                    while let message = try port.tryReceive() {
                        ids.append(message.id)
                        try? message.reply(MachMessage(id: message.id))
                    }
                    if isLast { return ids }
                    _ = try port.receive(within: .microseconds(200)).map { message in
                        ids.append(message.id)
                        try? message.reply(MachMessage(id: message.id))
                    }
                }
            }
            for id in 0..<count {
                let (right, bytes) = (rights[id % 3], [UInt8](repeating: 1, count: id % 7 == 0 ? 150_000 : 3_000))
                let message = MachMessage(id: Int32(id), bytes: bytes)
                let limit: Duration = id % 5 == 1 ? .microseconds(id) : longTimeout
                let task = Task { outcomes.append((message.id, await failure(of: right, message, sendLimit: limit))) }
                if id % 5 == 2 { task.cancel() }
                if id % 5 == 3 { Task { task.cancel() } }
            }
            let all = outcomes.waitUntilCount(count)
            ended.open()
            let received = try receiver.join()
            #expect(Set(received).count == received.count)
            let unsent = Set(all.filter { $0.error?.delivery == .notSent }.map(\.id))
            #expect(unsent.isDisjoint(with: received))
            #expect(unsent.count + received.count == count)
            let others = all.compactMap { $0.error?.code }.filter { $0 != .cancelled && $0 != .sendTimedOut }
            #expect(others == [])
        }
    }

    @Test(
        "a port of the far side that is served does the same", .seeded, arguments: TestTransport.withName)
    func stressOfFarPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(queueLimit: 2, .echoAndSay) { _, port in
                let count = 150
                let rights = try (0..<3).map { _ in try bench.right(to: port) }
                let outcomes = Recorder<(id: Int32, error: PortError?)>()
                for id in 0..<count {
                    let bytes = [UInt8](repeating: 1, count: id % 7 == 0 ? 150_000 : 3_000)
                    let limit: Duration = id % 5 == 1 ? .microseconds(id) : longTimeout
                    let (right, message) = (rights[id % 3], MachMessage(id: Int32(id), bytes: bytes))
                    let task = Task {
                        outcomes.append((message.id, await failure(of: right, message, sendLimit: limit)))
                    }
                    if id % 5 == 2 { task.cancel() }
                    if id % 5 == 3 { Task { task.cancel() } }
                }
                let all = outcomes.waitUntilCount(count)
                let unsent = Set(all.filter { $0.error?.delivery == .notSent }.map(\.id))
                let answered = Set(all.filter { $0.error == nil }.map(\.id))
                // Each message that was sent is handled once; an abandoned request does not report whether it was sent.
                let lines = try port.lines(count - unsent.count)
                let handled = lines.compactMap { Int32($0) }
                #expect(Set(handled).count == handled.count && handled.count == count - unsent.count)
                #expect(unsent.isDisjoint(with: handled) && answered.isSubset(of: handled))
            }
        }
    }
}

extension SendRight {
    /// Waits until `count` senders wait: for room, for a grant, or for the send lock.
    func waitForSenders(_ count: Int) throws {
        if let localPort = destination as? LocalPort { return localPort.waitForSenders(count) }
        let port = try destination.reach(until: .distantPast)?.destination ?? destination
        let connection = try #require(port as? RemotePort).reached()
        let deadline = Watchdog.deadline
        while connection.sender.waitingCount != count {
            if .now > deadline { return Watchdog.expired("\(count) senders that wait") }
            sched_yield()
        }
    }
}

extension PacketSender {
    /// How many senders wait: the first for a grant, or for room in the connection, and others for their turn.
    fileprivate var waitingCount: Int {
        let isLocked = largeLine.isLocked || credit.line.isLocked || lock.isLocked
        return largeLine.waitingCount + credit.line.waitingCount + lock.waitingCount + (isLocked ? 1 : 0)
    }
}
