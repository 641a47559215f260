// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("notices", .contract) struct NoticeContract {
    @Test("a sender that found the queue full is notified once when there is room", arguments: TestTransport.allCases)
    func sendPossible(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, count) = try bench.farFull(queueLimit: 2)
            let (worker, notices) = (Worker(), Recorder<SendPossibility>("notices"))
            for _ in 0..<3 { try right.notifyWhenSendPossible(on: worker.loop) { notices.append($0) } }
            try worker.perform {}
            #expect(notices.count == 0)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(notices.waitUntilCount(3) == [.possible, .possible, .possible])
            #expect(try right.trySend(MachMessage(id: 7)))
            #expect(try port.next().id == 7)
            _ = try right.fill(bytes: 3000)
            _ = try port.next()
            try worker.perform {}
            #expect(notices.count == 3)
            try worker.end()
        }
    }

    @Test("a notice of room that is there already comes soon", arguments: TestTransport.allCases)
    func roomIsThere(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let (worker, notices) = (Worker(), Recorder<SendPossibility>("notices"))
            try right.notifyWhenSendPossible(on: worker.loop) { notices.append($0) }
            #expect(notices.waitUntilCount(1) == [.possible])
            try worker.end()
        }
    }

    @Test("a sender that waits for room at a port that ends learns that it is dead", arguments: TestTransport.allCases)
    func portEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, _) = try bench.farFull()
            let (worker, notices) = (Worker(), Recorder<SendPossibility>("notices"))
            try right.notifyWhenSendPossible(on: worker.loop) { notices.append($0) }
            try port.invalidate()
            #expect(notices.waitUntilCount(1) == [.deadName])
            try right.notifyWhenSendPossible(on: worker.loop) { notices.append($0) }
            #expect(notices.waitUntilCount(2) == [.deadName, .deadName])
            try worker.end()
            #expect(notices.count == 2)
        }
    }

    @Test("a higher limit notifies senders that wait for room")
    func limit() async throws {
        try await onBench(over: .memory) { bench in
            let (port, right, _) = try bench.full()
            let (worker, notices) = (Worker(), Recorder<SendPossibility>("notices"))
            try right.notifyWhenSendPossible(on: worker.loop) { notices.append($0) }
            port.setQueueLimit(2)
            #expect(notices.waitUntilCount(1) == [.possible])
            try worker.end()
        }
    }

    @Test("a notice whose loop's thread ends is released and never delivered", arguments: TestTransport.inProcess)
    func threadEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, count) = try bench.full()
            weak var released: Counter?
            do {
                let notices = Counter()
                released = notices
                let loop = try onNewThread {
                    try right.notifyWhenSendPossible { _ in notices.increment() }
                    try port.notifyWhenNoSenders { notices.increment() }
                    port.setInvalidationHandler(on: .current) { notices.increment() }
                    return ThreadRunLoop.current
                }
                try right.notifyWhenSendPossible(on: loop) { _ in notices.increment() }
                #expect(notices.value == 0)
            }
            #expect(released == nil)
            for id in 0..<count { #expect(try port.next().id == id) }
            port.invalidate()
        }
    }

    @Test("no notice of room is lost or delivered twice while senders and a receiver race")
    func sendPossibleStress() async throws {
        try await onBench(over: .memory) { bench in
            let port = try bench.port(queueLimit: 1)
            let senders = (0..<4).map { sender in
                runOnThread { try Self.sendAll(500, as: Int32(sender), over: port.makeSendRight()) }
            }
            var next = [Int32](repeating: 0, count: 4)
            for _ in 0..<2000 {
                let message = try port.next()
                let sender = Int(message.bytes[0])
                #expect(message.id == next[sender])
                next[sender] += 1
            }
            for sender in senders { try sender.join() }
            #expect(next == [500, 500, 500, 500])
        }
    }

    /// Sends without ever waiting for room: after each "full" it runs its loop until it is notified.
    private static func sendAll(_ count: Int32, as sender: Int32, over right: SendRight) throws {
        let idle = RunLoopSource {}
        ThreadRunLoop.current.add(idle)
        defer { idle.invalidate() }
        for id in 0..<count {
            while try !right.trySend(MachMessage(id: id, bytes: [UInt8(sender)])) {
                let notices = Counter("room")
                try right.notifyWhenSendPossible { _ in
                    notices.increment()
                    ThreadRunLoop.current.stop()
                }
                let result = ThreadRunLoop.current.run(for: longTimeout)
                try #require(result == .stopped)
                #expect(notices.value == 1)
            }
        }
    }

    @Test("the port is notified once when its last sender has gone", arguments: TestTransport.inProcess)
    func noSenders(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try Self.expectNoticeOfLast(on: bench) {
                try bench.right(to: $0)
            } send: { (right: SendRight) in
                try right.send(MachMessage())
            }
        }
    }

    @Test("the port is notified once when its last sender of the far side has gone", arguments: TestTransport.allCases)
    func noFarSenders(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try Self.expectNoticeOfLast(on: bench) {
                try bench.farSender(to: $0)
            } send: { (sender: FarSender) in
                try sender.send(MachMessage())
            }
        }
    }

    /// Has three senders send and go, then another.
    private static func expectNoticeOfLast<Sender>(
        on bench: Bench, makeSender: (MachPort) throws -> Sender, send: (Sender) throws -> Void
    ) throws {
        let (notices, seen, worker) = (Counter("no-senders notices"), Counter("messages"), Worker())
        let port = try bench.port { _, _ in seen.increment() }
        try port.schedule(on: worker.loop)
        try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
        do {
            let senders = try (0..<3).map { _ in try makeSender(port) }
            for sender in senders { try send(sender) }
            seen.waitUntilCount(3)
            let copy = senders[0]
            try worker.perform {}
            #expect(notices.value == 0)
            withExtendedLifetime((senders, copy)) {}
        }
        notices.waitUntilCount(1)
        // A new sender counts for a new request only.
        do { try send(makeSender(port)) }
        seen.waitUntilCount(4)
        try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
        notices.waitUntilCount(2)
        port.invalidate()
        try worker.end()
        #expect(notices.value == 2)
    }

    @Test("a port of the far side is notified there that it has no senders", arguments: TestTransport.allCases)
    func noSendersOfFarPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(.note, isServed: true)
            try port.notifyWhenNoSenders()
            do {
                let right = try bench.right(to: port)
                try right.send(MachMessage(id: 1))
                #expect(try port.lines(1) == ["1"])
                try port.settle()
                #expect(try port.lines() == ["1"])
                withExtendedLifetime(right) {}
            }
            #expect(try port.lines(2) == ["1", "no senders"])
        }
    }

    @Test("a right inside a message is a sender")
    func rightInMessage() async throws {
        try await onBench(over: .memory) { bench in
            let (port, other) = (try bench.port(), try bench.port())
            let notices = Counter("no-senders notices")
            try port.notifyWhenNoSenders { notices.increment() }
            let idle = RunLoopSource {}
            ThreadRunLoop.current.add(idle)
            try other.makeSendRight().send(MachMessage(components: [.right(port.makeSendRight())]))
            ThreadRunLoop.current.run(for: .zero)
            #expect(notices.value == 0)
            _ = try other.next()
            ThreadRunLoop.current.run(for: .zero)
            #expect(notices.value == 1)
            idle.invalidate()
        }
    }

    @Test("what senders left in the queue can be read after they are gone", arguments: TestTransport.allCases)
    func readableAfterwards(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 2)
            let count = try bench.right(to: port).fill(bytes: 100)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "the invalidation handler is called once on the loop of the caller's choice", arguments: TestTransport.inProcess
    )
    func invalidation(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (worker, notices) = (Worker(), Recorder<Bool>("invalidations"))
            let port = try bench.port()
            port.setInvalidationHandler(on: worker.loop) { notices.append(worker.loop.isCurrent && !port.isValid) }
            #expect(notices.count == 0)
            port.invalidate()
            port.invalidate()
            #expect(notices.waitUntilCount(1) == [true])
            port.setInvalidationHandler(on: worker.loop) { notices.append(worker.loop.isCurrent) }
            #expect(notices.waitUntilCount(2) == [true, true])
            try worker.end()
            #expect(notices.count == 2)
        }
    }
}
