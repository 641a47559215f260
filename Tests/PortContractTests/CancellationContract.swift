// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Keeps what a handler got.
final class Kept: Sendable {
    let messages = Recorder<MachMessage>()
}

@Suite("cancelled requests", .tasks) struct CancellationContract {
    @Test("a requester whose time is up tells the receiver", arguments: TestTransport.allCases)
    func timedOut(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let told = Counter("cancellation handlers")
            let error = portError { () throws(PortError) in
                _ = try right.request(MachMessage(id: 1), sendLimit: patience, replyLimit: .milliseconds(1))
            }
            #expect(error?.code == .replyTimedOut && error?.delivery == .unknown)
            let message = try port.next()
            #expect(message.expectsReply && message.isCancelled)
            message.setCancellationHandler { told.increment() }
            while told.value == 0 { ThreadRunLoop.current.run(for: .zero) }
            let reply = portError { () throws(PortError) in try message.reply(MachMessage()) }
            #expect(reply?.code == .deadName)
            #expect(!message.isCancelled)
            ThreadRunLoop.current.run(for: .zero)
            #expect(told.value == 1)
            withExtendedLifetime(right) {}
        }
    }

    @Test(
        "a task that is cancelled while it waits throws at once, and the receiver's handler is called once",
        arguments: TestTransport.allCases)
    func cancelledTask(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (kept, told) = (Kept(), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { told.increment() }
                kept.messages.append(message)
            }) { right, _, worker in
                let outcome = Recorder<PortError?>()
                let task = Task { outcome.append(await failure(of: right, MachMessage(id: 1))) }
                kept.messages.waitUntilCount(1)
                #expect(told.value == 0)
                task.cancel()
                outcome.waitUntilCount(1)
                let error = outcome.elements[0]
                #expect(error?.code == .cancelled)
                #expect(error?.delivery == (transport == .memory ? .read : .unknown))
                told.waitUntilCount(1)
                let late = try worker.perform {
                    let message = kept.messages.elements[0]
                    return (message.isCancelled, portError { () throws(PortError) in try message.reply(.init()) }?.code)
                }
                #expect(late.0 && late.1 == .deadName)
                #expect(told.value == 1)
            }
        }
    }

    @Test("a request of a task is answered, and a handler is not called then", arguments: TestTransport.allCases)
    func answered(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let told = Counter("cancellation handlers")
            try bench.serving({ _, message in
                message.setCancellationHandler { told.increment() }
                try? message.reply(MachMessage(id: message.id * 2))
            }) { right, _, worker in
                let replies = Recorder<Int32>()
                for id in Int32(1)...20 {
                    Task { replies.append(try await right.request(MachMessage(id: id)).id) }
                }
                #expect(Set(replies.waitUntilCount(20)) == Set((1...20).map { Int32($0 * 2) }))
                try worker.perform {}
                #expect(told.value == 0)
            }
        }
    }

    @Test("a task that was cancelled before sends nothing", arguments: TestTransport.allCases)
    func cancelledBefore(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            let start = Gate("the start")
            let task = Task {
                await start.wait()
                outcome.append(await failure(of: right, MachMessage(id: 1)))
            }
            task.cancel()
            start.open()
            let error = outcome.waitUntilCount(1)[0]
            #expect(error?.code == .cancelled && error?.delivery == .notSent)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a request of a task ends at its limit, and waits for room up to its other limit",
        arguments: TestTransport.allCases)
    func limits(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 1)
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            Task { outcome.append(await failure(of: right, MachMessage(id: 1), replyLimit: .milliseconds(1))) }
            #expect(outcome.waitUntilCount(1)[0]?.code == .replyTimedOut)
            #expect(try port.next().isCancelled)
            let count = try right.fill()
            Task { outcome.append(await failure(of: right, MachMessage(id: -1), sendLimit: .milliseconds(1))) }
            let error = outcome.waitUntilCount(2)[1]
            #expect(error?.code == .sendTimedOut && error?.delivery == .notSent)
            let replies = Recorder<Int32>()
            Task { replies.append(try await right.request(MachMessage(id: -2), sendLimit: patience).id) }
            for id in 0..<count { #expect(try port.next().id == id) }
            try port.next().reply(MachMessage(id: 9))
            #expect(replies.waitUntilCount(1) == [9])
        }
    }

    @Test("the end of the port that waits for a reply is a cancellation", arguments: TestTransport.allCases)
    func requestingPortEnded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (kept, told) = (Kept(), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { told.increment() }
                kept.messages.append(message)
            }) { right, _, _ in
                let port = try bench.port()
                try right.send(MachMessage(id: 1, replyTo: port))
                kept.messages.waitUntilCount(1)
                #expect(told.value == 0)
                port.invalidate()
                told.waitUntilCount(1)
                #expect(kept.messages.elements[0].isCancelled)
            }
        }
    }

    @Test(
        "the end of a port that has its replies cancels nothing, and it keeps nothing of them",
        arguments: TestTransport.allCases)
    func answeredPortEnded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let told = Counter("cancellation handlers")
            try bench.serving({ _, message in
                message.setCancellationHandler { told.increment() }
                if message.id < 10 { try? message.reply(MachMessage(id: message.id)) }
            }) { right, _, worker in
                let port = try bench.port()
                for id in Int32(1)...10 {
                    try right.send(MachMessage(id: id, replyTo: port))
                    #expect(try port.next().id == (id < 10 ? id : MachMessage.sendOnceNotification))
                }
                #expect(port.core.state.withLock { $0.extras.endings.isEmpty })
                port.invalidate()
                try worker.perform {}
                #expect(told.value == 0)
            }
        }
    }

    @Test("a request of a task may wait for ever", arguments: TestTransport.allCases)
    func noLimit(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let kept = Kept()
            try bench.serving({ _, message in kept.messages.append(message) }) { right, _, worker in
                let most = MonotonicInstant.now.duration(to: .distantFuture)
                let limits: [Duration] = [
                    .seconds(Int64.max), .nanoseconds(Int64.max), most, most - .seconds(60), .seconds(10_000_000_000),
                ]
                let replies = Recorder<Int32>()
                for limit in limits {
                    Task {
                        replies.append(
                            try await right.request(MachMessage(id: 5), sendLimit: limit, replyLimit: limit).id)
                    }
                }
                let messages = kept.messages.waitUntilCount(limits.count)
                try worker.perform { for message in messages { try message.reply(MachMessage(id: 6)) } }
                #expect(replies.waitUntilCount(limits.count) == limits.map { _ in 6 })
            }
        }
    }

    @Test("the death of the requester's connection is a cancellation")
    func requesterDied() async throws {
        try await onBench(over: .socket) { bench in
            let (kept, told) = (Kept(), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { told.increment() }
                kept.messages.append(message)
            }) { _, port, _ in
                do {
                    let peer = try RawPeer(to: port, on: bench)
                    try peer.send(MachMessage(id: 1), asks: 1)
                    kept.messages.waitUntilCount(1)
                    #expect(told.value == 0)
                }
                told.waitUntilCount(1)
                #expect(kept.messages.elements[0].isCancelled)
            }
        }
    }

    @Test("a request that a port in memory hands on over a socket is answered, and its cancellation follows")
    func handedOnOverSocket() async throws {
        try await onBench(over: .socket) { bench in
            let (kept, told) = (Kept(), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                if message.id > 0 {
                    return (try? message.reply(MachMessage(id: message.id * 2, bytes: message.bytes))) ?? ()
                }
                message.setCancellationHandler { told.increment() }
                kept.messages.append(message)
            }) { behind, _, _ in
                let worker = Worker()
                let front = MachPort { _, message in handOn(message, to: behind) }
                try front.schedule(on: worker.loop)
                let right = front.makeSendRight()
                #expect(try right.ask(MachMessage(id: 4)).id == 10)
                let replies = Recorder<[UInt8]>()
                Task { replies.append(try await right.request([1, 2] as [UInt8], as: [UInt8].self, id: 5)) }
                #expect(replies.waitUntilCount(1) == [[1, 2]])
                let outcome = Recorder<PortError?>()
                let task = Task { outcome.append(await failure(of: right, MachMessage(id: -1))) }
                kept.messages.waitUntilCount(1)
                task.cancel()
                #expect(outcome.waitUntilCount(1)[0]?.delivery == .read)
                told.waitUntilCount(1)
                front.invalidate()
                try worker.end()
            }
        }
    }

    @Test("a cancellation follows a request that was handed on", arguments: TestTransport.allCases)
    func handedOn(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (kept, told) = (Kept(), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { told.increment() }
                kept.messages.append(message)
            }) { behind, _, _ in
                try bench.serving({ _, message in handOn(message, to: behind) }) { front, _, _ in
                    let outcome = Recorder<PortError?>()
                    let task = Task { outcome.append(await failure(of: front, MachMessage(id: 1))) }
                    kept.messages.waitUntilCount(1)
                    task.cancel()
                    outcome.waitUntilCount(1)
                    told.waitUntilCount(1)
                    #expect(kept.messages.elements[0].isCancelled)
                }
            }
        }
    }
}

extension MachMessage {
    /// A message whose reply goes to a port's queue.
    fileprivate init(id: Int32, replyTo port: MachPort) {
        self.init(id: id)
        setReplyRight(port.makeSendOnceRight())
    }
}

/// What a request of a task throws; nil when it is answered.
func failure(
    of right: SendRight, _ message: MachMessage, sendLimit: Duration = patience, replyLimit: Duration = patience
) async -> PortError? {
    do throws(PortError) {
        _ = try await right.request(message, sendLimit: sendLimit, replyLimit: replyLimit)
        return nil
    } catch {
        return error
    }
}

extension Trait where Self == Census {
    /// The census, for tests of tasks: the thread that receives for them stays.
    static var tasks: Self {
        .census(
            settles: true, warmingUp: makeSharedReceiver)
    }
}
