// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A send that returns when the message has arrived, and the notice of one that never did.
@Suite("confirmed sends", .tasks) struct ConfirmationContract {
    /// A send under way, in a task or on a thread.
    private struct Send {
        let outcome = Recorder<PortError?>("the end of a confirmed send")
        private let thread: TestThread<Void>?

        init(
            _ message: MachMessage, _ right: SendRight, confirming confirmation: SendConfirmation, asTask: Bool = false,
            confirmationLimit limit: Duration = longTimeout
        ) {
            let outcome = outcome
            if asTask {
                thread = nil
                Task {
                    do throws(PortError) {
                        try await right.send(
                            message, confirming: confirmation, sendLimit: longTimeout, confirmationLimit: limit)
                        outcome.append(nil)
                    } catch {
                        outcome.append(error)
                    }
                }
            } else {
                thread = runOnThread {
                    outcome.append(
                        portError { () throws(PortError) in
                            try right.send(
                                message, confirming: confirmation, sendLimit: longTimeout, confirmationLimit: limit)
                        })
                }
            }
        }

        /// Waits for the end.
        func end() throws -> PortError? {
            try thread?.join()
            return outcome.waitUntilCount(1).first ?? nil
        }
    }

    /// Waits until a message is in the port's queue.
    private func waitUntilQueued(_ port: FarPort, _ count: Int = 1) throws {
        let deadline = Watchdog.deadline
        while try port.queueCount < count {
            try port.receiveFromSockets()
            if .now >= deadline { return Watchdog.expired("no message is queued") }
        }
    }

    @Test(
        "a message that is to be queued is in the queue when the send returns, also where nothing receives",
        arguments: TestTransport.withName, [false, true])
    func queued(over transport: TestTransport, asTask: Bool) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 3)
            let right = try bench.right(to: port)
            for count in 1...3 {
                let send = Send(MachMessage(id: Int32(count)), right, confirming: .queued, asTask: asTask)
                #expect(try send.end() == nil)
                #expect(try port.queueCount == count)
            }
            // They are still there.
            #expect(try !right.trySend(MachMessage(id: 4)))
            let error = portError { () throws(PortError) in
                try right.send(MachMessage(id: 5), confirming: .queued, sendLimit: .zero)
            }
            #expect(error?.code == .sendTimedOut)
            for id in Int32(1)...3 { #expect(try port.next().id == id) }
        }
    }

    @Test(
        "a send waits until its message is taken out of the queue", arguments: TestTransport.withName, [false, true])
    func taken(over transport: TestTransport, asTask: Bool) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let send = Send(MachMessage(id: 1, bytes: [7]), right, confirming: .taken, asTask: asTask)
            try waitUntilQueued(port)
            #expect(send.outcome.count == 0)
            let message = try port.next()
            #expect(try send.end() == nil)
            #expect(message.id == 1 && message.bytes == [7])
        }
    }

    @Test(
        "a send waits until its message is released by its receiver", arguments: TestTransport.withName, [false, true])
    func handled(over transport: TestTransport, asTask: Bool) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let large = pattern(200_000)
            let send = Send(MachMessage(id: 1, bytes: large), right, confirming: .handled, asTask: asTask)
            do {
                let message = try port.next()
                #expect(message.bytes == large)
                #expect(send.outcome.count == 0)
                // The port's end does not change that it is being handled.
                try port.invalidate()
                #expect(send.outcome.count == 0)
                withExtendedLifetime(message) {}
            }
            #expect(try send.end() == nil)
        }
    }

    @Test("a handler has returned when the send does", arguments: TestTransport.withName)
    func handlerReturns(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (begun, mayEnd, ended) = (Gate("the handler"), Gate("its end"), Counter("handlers that have returned"))
            try bench.serving({ _, message in
                #expect(!message.expectsReply && message.takeReplyRight() == nil && !message.isCancelled)
                #expect(portError { () throws(PortError) in try message.reply(MachMessage()) }?.code == .noReplyRight)
                begun.open()
                mayEnd.wait()
                ended.increment()
            }) { right, _, _ in
                let send = Send(MachMessage(id: 1), right, confirming: .handled)
                #expect(begun.wait() && send.outcome.count == 0)
                mayEnd.open()
                let error = try send.end()
                #expect(error == nil)
                #expect(ended.value == 1)
            }
        }
    }

    @Test(
        "a message that its receiver sends on is handled when the receiver is done, whatever becomes of the copies",
        arguments: TestTransport.allCases, TestTransport.inProcess)
    func sentOn(over transport: TestTransport, onward: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let other = try bench.port(queueLimit: 1, policy: .dropOldest)
            let address = try other.localPort.address(in: bench.directory)
            let next =
                onward == .memory
                ? other.makeSendRight() : SendRight(try bench.connect(to: address))
            let (sentOn, mayEnd, ended) = (
                Gate("it is sent on"), Gate("the end"), Counter("handlers that have returned")
            )
            try bench.serving({ _, message in
                for _ in 0..<2 { try? next.send(message, within: longTimeout) }
                sentOn.open()
                mayEnd.wait()
                ended.increment()
            }) { right, _, _ in
                let send = Send(MachMessage(id: 1), right, confirming: .handled)
                #expect(sentOn.wait())
                other.localPort.receiveFromSockets()
                do {
                    let copy = try other.next()
                    #expect(copy.id == 1 && !copy.expectsReply)
                    other.invalidate()
                    #expect(send.outcome.count == 0)
                    mayEnd.open()
                    withExtendedLifetime(copy) {}
                }
                let error = try send.end()
                #expect(error == nil)
                #expect(ended.value == 1)
            }
        }
    }

    @Test(
        "a message that the queue's policy drops is not confirmed as taken, nor as handled",
        arguments: TestTransport.allCases, [SendConfirmation.taken, .handled])
    func dropped(over transport: TestTransport, confirmation: SendConfirmation) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1, policy: .dropOldest)
            let right = try bench.right(to: port)
            let send = Send(MachMessage(id: 1), right, confirming: confirmation)
            try waitUntilQueued(port)
            try right.send(MachMessage(id: 2))
            try port.receiveFromSockets()
            let error = try send.end()
            #expect(error?.code == .messageDropped && error?.delivery == .unread)
            #expect(try port.next().id == 2)
        }
    }

    @Test(
        "a port that ends with the message in its queue confirms nothing",
        arguments: TestTransport.allCases, [SendConfirmation.taken, .handled])
    func portEnds(over transport: TestTransport, confirmation: SendConfirmation) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let send = Send(MachMessage(id: 1), right, confirming: confirmation)
            try waitUntilQueued(port)
            try port.invalidate()
            let error = try send.end()
            #expect(error?.code == .peerDied && error?.delivery == .unread)
            let failure = portError { () throws(PortError) in try right.send(MachMessage(), confirming: confirmation) }
            #expect(failure?.code == .deadName)
        }
    }

    @Test("a message that is not confirmed in time may still be taken", arguments: TestTransport.withName)
    func tooLate(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let send = Send(
                MachMessage(id: 1), right, confirming: .taken, confirmationLimit: .milliseconds(20))
            #expect(try send.end()?.code == .replyTimedOut)
            #expect(try port.next().id == 1)
            // What comes too late is dropped.
            let next = Send(MachMessage(id: 2), right, confirming: .taken)
            #expect(try port.next().id == 2)
            #expect(try next.end() == nil)
        }
    }

    @Test("a send that could never be confirmed is refused")
    func deadlock() async throws {
        try await onBench(over: .memory) { bench in
            let port = try bench.port { _, _ in }
            try port.schedule(on: .current)
            let right = port.makeSendRight()
            for confirmation in [SendConfirmation.taken, .handled] {
                let error = portError { () throws(PortError) in
                    try right.send(MachMessage(), confirming: confirmation)
                }
                #expect(error?.code == .wouldDeadlock)
            }
            try right.send(MachMessage(id: 1), confirming: .queued)
            port.unscheduleEverywhere()
            #expect(try port.next().id == 1)
        }
    }

    @Test("a cancelled task waits no longer, and its message goes its way", arguments: TestTransport.withName)
    func cancelled(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError.Code?>("a cancelled send")
            let task = Task {
                do throws(PortError) {
                    try await right.send(MachMessage(id: 1), confirming: .taken)
                    outcome.append(nil)
                } catch {
                    outcome.append(error.code)
                }
            }
            try waitUntilQueued(port)
            task.cancel()
            #expect(outcome.waitUntilCount(1) == [.cancelled])
            #expect(try port.next().id == 1)
        }
    }
}

// MARK: - Bounces

extension ConfirmationContract {
    @Test("a message that bounces brings its sender one notice, with the reason", arguments: TestTransport.allCases)
    func bounce(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1, policy: .dropOldest)
            let right = try bench.right(to: port)
            let (worker, notices) = (Worker(), Recorder<PortError.Code>("bounces"))
            for id in Int32(1)...3 {
                try right.send(MachMessage(id: id), within: longTimeout, notifyingBounceOn: worker.loop) {
                    notices.append($0.code)
                }
                try port.receiveFromSockets()
            }
            #expect(notices.waitUntilCount(2) == [.messageDropped, .messageDropped])
            try port.invalidate()
            #expect(notices.waitUntilCount(3).last == .peerDied)
            let error = portError { () throws(PortError) in
                try right.send(MachMessage(), within: longTimeout, notifyingBounceOn: worker.loop) {
                    notices.append($0.code)
                }
            }
            #expect(error?.code == .deadName)
            try worker.end()
            #expect(notices.count == 3)
        }
    }

    @Test(
        "a message that is taken, one that was not sent, and a withdrawn notice bring none",
        arguments: TestTransport.allCases)
    func noBounce(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let (worker, notices) = (Worker(), Counter("bounces"))
            func send(_ id: Int32, within limit: Duration = longTimeout) throws(PortError) -> NoticeRequest {
                try right.send(MachMessage(id: id), within: limit, notifyingBounceOn: worker.loop) { _ in
                    notices.increment()
                }
            }
            _ = try send(1)
            #expect(portError { () throws(PortError) in _ = try send(2, within: .zero) }?.code == .sendTimedOut)
            #expect(try port.next().id == 1)
            let request = try send(3)
            #expect(request.cancel())
            try port.invalidate()
            #expect(right.isDead)
            try worker.perform {}
            try worker.end()
            #expect(notices.value == 0)
        }
    }

    @Test("a message is no bounce because its right was released", arguments: TestTransport.withName)
    func rightReleased(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 2)
            let (worker, notices) = (Worker(), Recorder<Int32>("bounces"))
            for id in Int32(1)...2 {
                try bench.right(to: port)
                    .send(MachMessage(id: id), within: longTimeout, notifyingBounceOn: worker.loop) { _ in
                        notices.append(id)
                    }
            }
            try waitUntilQueued(port, 2)
            // Each right had a connection of its own, so either may be the first.
            let taken = try port.next().id
            try port.invalidate()
            #expect(notices.waitUntilCount(1) == [3 - taken])
            try worker.end()
            #expect(notices.count == 1)
        }
    }

    @Test("a task learns of a bounce, too", arguments: TestTransport.withName)
    func bounceOfTask(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let (worker, notices) = (Worker(), Recorder<PortError.Code?>("bounces, and the end of the send"))
            Task {
                do throws(PortError) {
                    try await right.send(MachMessage(id: 1), within: longTimeout, notifyingBounceOn: worker.loop) {
                        notices.append($0.code)
                    }
                    notices.append(nil)
                } catch {
                    notices.append(error.code)
                }
            }
            #expect(notices.waitUntilCount(1) == [nil])
            try waitUntilQueued(port)
            try port.invalidate()
            #expect(notices.waitUntilCount(2) == [nil, .peerDied])
            try worker.end()
        }
    }
}
