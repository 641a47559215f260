// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("cancelled requests", .tasks) struct CancellationContract {
    @Test("a request that times out is reported to the receiver", arguments: TestTransport.inProcess)
    func timedOut(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let notified = Counter("cancellation handlers")
            let error = portError { () throws(PortError) in
                _ = try right.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: .milliseconds(1))
            }
            #expect(error?.code == .replyTimedOut && error?.delivery == .unknown)
            let message = try port.next()
            #expect(message.expectsReply && message.isCancelled)
            message.setCancellationHandler { notified.increment() }
            while notified.value == 0 { ThreadRunLoop.current.run(for: .zero) }
            let reply = portError { () throws(PortError) in try message.reply(MachMessage()) }
            #expect(reply?.code == .deadName)
            #expect(!message.isCancelled)
            ThreadRunLoop.current.run(for: .zero)
            #expect(notified.value == 1)
            withExtendedLifetime(right) {}
        }
    }

    @Test("an answered request leaves no alarm, and many do not each leave a sleep", arguments: TestTransport.inProcess)
    func alarms(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keepSeven) { right, _ in
                let replies = Recorder<Int32>("replies")
                let before = AlarmClock.shared.counts
                Task {
                    for id in Int32(11)...40 {
                        replies.append(try await right.request(MachMessage(id: id), replyLimit: .seconds(3600)).id)
                    }
                }
                #expect(replies.waitUntilCount(30) == Array(repeating: 2, count: 30))
                let after = AlarmClock.shared.counts
                #expect(after.alarms <= before.alarms)
                #expect(after.sleeps <= before.sleeps + 2)
            }
        }
    }

    @Test(
        "a task that is cancelled while it waits throws at once, and the receiver's handler is called once",
        arguments: TestTransport.withName)
    func cancelledTask(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keepAndAwait) { right, port in
                let outcome = Recorder<PortError?>()
                let task = Task { outcome.append(await failure(of: right, MachMessage(id: 1))) }
                #expect(try port.lines(1) == ["retained 1"])
                task.cancel()
                outcome.waitUntilCount(1)
                let error = outcome.elements[0]
                #expect(error?.code == .cancelled)
                #expect(error?.delivery == (transport == .memory ? .read : .unknown))
                #expect(try port.lines(2) == ["retained 1", "cancelled"])
                #expect(try port.isRetainedCancelled())
                let late = portError { () throws(PortError) in try port.replyRetained(MachMessage()) }
                #expect(late?.code == .deadName)
                try port.settle()
                #expect(try port.lines().count == 2)
            }
        }
    }

    @Test("a request of a task is answered, and a handler is not called then", arguments: TestTransport.withName)
    func answered(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.replyAndAwait) { right, port in
                let replies = Recorder<Int32>()
                for id in Int32(1)...20 {
                    Task { replies.append(try await right.request(MachMessage(id: id)).id) }
                }
                #expect(Set(replies.waitUntilCount(20)) == Set((1...20).map { Int32($0 * 2) }))
                try port.settle()
                #expect(try port.lines() == [])
            }
        }
    }

    @Test("a task that was cancelled before sends nothing", arguments: TestTransport.withName)
    func cancelledBefore(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            let start = Gate("the start")
            let task = Task {
                await start.wait()
                outcome.append(await failure(of: right, MachMessage(id: 1)))
            }
            task.cancel()
            start.open()
            let error = try #require(outcome.waitUntilCount(1).first)
            #expect(error?.code == .cancelled && error?.delivery == .notSent)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a request of a task ends at its limit, and waits for room up to its other limit",
        arguments: TestTransport.withName)
    func limits(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError?>()
            Task { outcome.append(await failure(of: right, MachMessage(id: 1), replyLimit: .milliseconds(1))) }
            #expect(try #require(outcome.waitUntilCount(1).first)?.code == .replyTimedOut)
            #expect(try port.next().isCancelled)
            // The far side is asked for each message that fills the way: of large ones there are fewer.
            let bytes = [UInt8](repeating: 1, count: 3000)
            let count = try right.fill(bytes: bytes.count)
            let late = MachMessage(id: -1, bytes: bytes)
            Task { outcome.append(await failure(of: right, late, sendLimit: .milliseconds(1))) }
            let error = outcome.waitUntilCount(2)[1]
            #expect(error?.code == .sendTimedOut && error?.delivery == .notSent)
            let replies = Recorder<Int32>()
            let last = MachMessage(id: -2, bytes: bytes)
            Task { replies.append(try await right.request(last, sendLimit: longTimeout).id) }
            for id in 0..<count { #expect(try port.next().id == id) }
            try port.next().reply(MachMessage(id: 9))
            #expect(replies.waitUntilCount(1) == [9])
        }
    }

    @Test("the end of the port that waits for a reply is a cancellation", arguments: TestTransport.withName)
    func requestingPortEnded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keepAndAwait) { right, far in
                let port = try bench.port()
                try right.send(MachMessage(id: 1, replyTo: port))
                #expect(try far.lines(1) == ["retained 1"])
                port.invalidate()
                #expect(try far.lines(2) == ["retained 1", "cancelled"])
                #expect(try far.isRetainedCancelled())
            }
        }
    }

    @Test(
        "the end of a port that has its replies cancels nothing, and it keeps nothing of them",
        arguments: TestTransport.withName)
    func answeredPortEnded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.replyAndAwait) { right, far in
                let port = try bench.port()
                for id in Int32(1)...10 {
                    try right.send(MachMessage(id: id < 10 ? id : -1, replyTo: port))
                    #expect(try port.next().id == (id < 10 ? id * 2 : MachMessage.sendOnceNotification))
                }
                #expect(port.localPort.state.withLock { $0.coldState.endings.isEmpty })
                port.invalidate()
                try far.settle()
                #expect(try far.lines() == [])
            }
        }
    }

    @Test(
        "a request that the far side gives up is reported to the receiver; the next request is answered",
        arguments: TestTransport.withName)
    func farRequester(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (retained, notified) = (Recorder<MachMessage>("messages"), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { notified.increment() }
                retained.append(message)
            }) { _, port, _ in
                let sender = try bench.farSender(to: port)
                try sender.beginRequest(MachMessage(id: 1))
                retained.waitUntilCount(1)
                #expect(notified.value == 0)
                try sender.cancel()
                notified.waitUntilCount(1)
                #expect(retained.elements[0].isCancelled)
                let outcome = try sender.lines(1)
                #expect(outcome == ["error cancelled, \(transport == .memory ? "read" : "unknown")"])
                try sender.beginRequest(MachMessage(id: 2))
                retained.waitUntilCount(2)
                try retained.elements[1].reply(MachMessage(id: 3))
                #expect(try sender.lines(2) == outcome + ["reply 3"])
            }
        }
    }

    @Test("a request that times out on the far side is reported to the receiver", arguments: TestTransport.withName)
    func timedOutAtFarPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keepAndAwait) { right, port in
                let error = portError { () throws(PortError) in
                    _ = try right.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: .milliseconds(1))
                }
                #expect(error?.code == .replyTimedOut)
                // In memory it is known by then that the port has received the request.
                let known: [PortError.Delivery?] = transport == .memory ? [.unknown, .read] : [.unknown]
                #expect(known.contains(error?.delivery))
                // In either order: the thread that serves the port may be late.
                let (lines, isCancelled) = (try port.lines(2), try port.isRetainedCancelled())
                #expect(lines.sorted() == ["cancelled", "retained 1"] && isCancelled)
                let late = portError { () throws(PortError) in try port.replyRetained(MachMessage()) }
                #expect(late?.code == .deadName)
            }
        }
    }

    @Test("a request of a task may wait without a limit", arguments: TestTransport.withName)
    func noLimit(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keep) { right, port in
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
                #expect(try port.lines(limits.count) == limits.map { _ in "retained 5" })
                for _ in limits { try port.replyRetained(MachMessage(id: 6)) }
                #expect(replies.waitUntilCount(limits.count) == limits.map { _ in 6 })
            }
        }
    }

    @Test("the death of the requester's connection is a cancellation")
    func requesterDied() async throws {
        try await onBench(over: .socket) { bench in
            let (retained, notified) = (Recorder<MachMessage>("messages"), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { notified.increment() }
                retained.append(message)
            }) { _, port, _ in
                do {
                    let peer = try RawPeer(to: port, on: bench)
                    try peer.send(MachMessage(id: 1), asks: 1)
                    retained.waitUntilCount(1)
                    #expect(notified.value == 0)
                }
                notified.waitUntilCount(1)
                #expect(retained.elements[0].isCancelled)
            }
        }
    }

    @Test("a request that a port in memory hands on over a socket is answered, and its cancellation follows")
    func handedOnOverSocket() async throws {
        try await onBench(over: .socket) { bench in
            let (retained, notified) = (Recorder<MachMessage>("messages"), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                if message.id > 0 {
                    return (try? message.reply(MachMessage(id: message.id * 2, bytes: message.bytes))) ?? ()
                }
                message.setCancellationHandler { notified.increment() }
                retained.append(message)
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
                retained.waitUntilCount(1)
                task.cancel()
                #expect(try #require(outcome.waitUntilCount(1).first)?.delivery == .read)
                notified.waitUntilCount(1)
                front.invalidate()
                try worker.end()
            }
        }
    }

    @Test("a cancellation follows a request that was handed on", arguments: TestTransport.withName)
    func handedOn(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (retained, notified) = (Recorder<MachMessage>("messages"), Counter("cancellation handlers"))
            try bench.serving({ _, message in
                message.setCancellationHandler { notified.increment() }
                retained.append(message)
            }) { behind, _, _ in
                try bench.serving(.handOn, handingOnTo: behind) { front, _ in
                    let outcome = Recorder<PortError?>()
                    let task = Task { outcome.append(await failure(of: front, MachMessage(id: 1))) }
                    retained.waitUntilCount(1)
                    task.cancel()
                    outcome.waitUntilCount(1)
                    notified.waitUntilCount(1)
                    #expect(retained.elements[0].isCancelled)
                }
            }
        }
    }
}

extension MachMessage {
    /// A message whose reply goes to a port's queue.
    init(id: Int32, replyTo port: MachPort) {
        self.init(id: id)
        setReplyRight(port.makeSendOnceRight())
    }
}

/// What a request of a task throws; nil when it is answered.
func failure(
    of right: SendRight, _ message: MachMessage, sendLimit: Duration = longTimeout, replyLimit: Duration = longTimeout
) async -> PortError? {
    do throws(PortError) {
        _ = try await right.request(message, sendLimit: sendLimit, replyLimit: replyLimit)
        return nil
    } catch {
        return error
    }
}

extension Trait where Self == LeakCheck {
    /// The leak check, for tests of tasks: the thread that receives for them stays.
    static var tasks: Self {
        .leakCheck(
            settles: true, warmingUp: warmUpIOThread)
    }
}
