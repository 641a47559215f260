// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import MessagePort
import TestSupport
import Testing

@Suite("send-once rights", .contract) struct ReplyRightContract {
    @Test("a send-once right delivers its one message to its port", arguments: TestTransport.withName)
    func delivers(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port) = (try bench.port(), try bench.farPort())
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1, replyTo: mine))
            let received = try port.next()
            #expect(try received.expectsReply)
            try received.reply(MachMessage(id: 2, bytes: [1, 2, 3]))
            #expect(try !received.expectsReply)
            let second = portError { () throws(PortError) in try received.reply(MachMessage(id: 3)) }
            #expect(second?.code == .noReplyRight)
            let reply = try mine.next()
            #expect(reply.id == 2)
            #expect(reply.bytes == [1, 2, 3])
            #expect(try mine.tryReceive()?.id == nil)
        }
    }

    @Test("a send-once right that is dropped unused notifies its port", arguments: TestTransport.withName)
    func dropped(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port) = (try bench.port(), try bench.farPort())
            let right = try bench.right(to: port)
            try right.send(carrying(mine.makeSendOnceRight()))
            _ = try port.next()
            #expect(try mine.next().id == MachMessage.sendOnceNotification)
            mine.makeSendOnceRight().drop()
            #expect(try mine.next().id == MachMessage.sendOnceNotification)
            #expect(try mine.tryReceive()?.id == nil)
        }
    }

    @Test("a send-once right whose holder ends notifies its port", arguments: TestTransport.allCases)
    func holderEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port) = (try bench.port(), try bench.farPort())
            let right = try bench.right(to: port)
            try right.send(carrying(mine.makeSendOnceRight()))
            try port.invalidate()
            #expect(try mine.next().id == MachMessage.sendOnceNotification)
            #expect(try mine.tryReceive()?.id == nil)
        }
    }

    @Test("of a message that was sent twice the last receiver's silence counts", arguments: TestTransport.withName)
    func sentTwice(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port, other) = (try bench.port(), try bench.farPort(), try bench.farPort())
            for (first, second) in [(port, port), (port, other)] {
                for replies in [true, false] {
                    do {
                        let message = carrying(mine.makeSendOnceRight())
                        try bench.right(to: first).send(message)
                        try bench.right(to: second).send(message)
                    }
                    do { _ = try first.next() }
                    #expect(try mine.tryReceive()?.id == nil)
                    do {
                        let message = try second.next()
                        if replies { try message.reply(MachMessage(id: 42)) }
                    }
                    #expect(try mine.next().id == (replies ? 42 : MachMessage.sendOnceNotification))
                    #expect(try mine.tryReceive()?.id == nil)
                }
            }
        }
    }

    @Test("of a message that was sent twice over one right each receiver may reply", arguments: TestTransport.withName)
    func sentTwiceOverOneRight(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port) = (try bench.port(), try bench.farPort())
            let right = try bench.right(to: port)
            do {
                let message = carrying(mine.makeSendOnceRight())
                try right.send(message)
                try right.send(message)
            }
            do { _ = try port.next() }
            #expect(try mine.tryReceive()?.id == nil)
            try port.next().reply(MachMessage(id: 42))
            #expect(try mine.next().id == 42)
            #expect(try mine.tryReceive()?.id == nil)
        }
    }

    @Test("a send-once right whose message could not be sent is still the caller's", arguments: TestTransport.allCases)
    func failedSend(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port, dead) = (try bench.port(), try bench.farPort(), try bench.farPort())
            let (right, deadRight) = (try bench.right(to: port), try bench.right(to: dead))
            try dead.invalidate()
            let message = carrying(mine.makeSendOnceRight())
            #expect(portError { () throws(PortError) in try deadRight.send(message) }?.code == .deadName)
            #expect(message.expectsReply)
            #expect(try mine.tryReceive()?.id == nil)
            try right.send(message)
            try port.next().reply(MachMessage(id: 4))
            #expect(try mine.next().id == 4)
        }
    }

    @Test("a send-once right may exceed a full queue", arguments: TestTransport.withName)
    func exceedsQueue(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (mine, port) = (try bench.port(queueLimit: 1), try bench.farPort())
            let right = try bench.right(to: port)
            for _ in 0..<3 { try right.send(carrying(mine.makeSendOnceRight())) }
            try mine.makeSendRight().send(MachMessage(id: 1))
            #expect(try !mine.makeSendRight().trySend(MachMessage()))
            for id in Int32(2)..<5 { try port.next().reply(MachMessage(id: id)) }
            #expect(try (0..<4).map { _ in try mine.next().id } == [1, 2, 3, 4])
        }
    }

    @Test("a request can be handed on: another port replies to its requester", arguments: TestTransport.withName)
    func handedOn(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving({ _, message in try? message.reply(MachMessage(id: message.id * 10)) }) { behind, _, _ in
                try bench.serving(.handOn, handingOnTo: behind) { front, _ in
                    for id in Int32(1)...20 {
                        let reply = try front.ask(MachMessage(id: id))
                        #expect(reply.id == (id + 1) * 10)
                    }
                }
            }
        }
    }

    @Test("a request that was handed on gets a large reply whole", arguments: TestTransport.withName)
    func handedOnWithLargeReply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let large = pattern(3 << 20)
            try bench.serving({ _, message in
                try? message.reply(MachMessage(id: message.id, bytes: large), within: longTimeout)
            }) { behind, _, _ in
                try bench.serving(.handOn, handingOnTo: behind) { front, _ in
                    let reply = try front.ask(MachMessage(id: 1))
                    #expect(reply.id == 2)
                    #expect(reply.bytes == large)
                }
            }
        }
    }

    @Test(
        "a port that handed a request on and then ended is dead, wherever the request is",
        arguments: TestTransport.allCases)
    func handedOnThenEnded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving({ _, message in try? message.reply(MachMessage(id: 3)) }) { behind, _, _ in
                try bench.serving(.keepAndHandOn, handingOnTo: behind) { front, port in
                    #expect(try front.ask(MachMessage(id: 1)).id == 3)
                    let (worker, notified) = (Worker("notices"), Counter("a death notice"))
                    try front.notifyWhenDead(on: worker.loop) { _ in notified.increment() }
                    try port.invalidate()
                    notified.waitUntilCount(1)
                    try worker.end()
                    #expect(try port.lines() == ["retained 1"])
                }
            }
        }
    }

    @Test("a request that was handed on and is released notifies its requester", arguments: TestTransport.withName)
    func handedOnAndDropped(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving({ _, _ in }) { behind, _, _ in
                try bench.serving(.handOn, handingOnTo: behind) { front, _ in
                    #expect(
                        portError { () throws(PortError) in _ = try front.ask(MachMessage()) }?.code == .replyDropped)
                }
            }
        }
    }

    @Test("a reply may ask for a reply of its own: a conversation", arguments: TestTransport.withName)
    func conversation(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.converse) { right, port in
                let question = try right.ask(MachMessage(id: 1))
                #expect(question.id == 2)
                #expect(question.expectsReply)
                try question.reply(MachMessage(id: 3))
                #expect(try port.lines(1) == ["3"])
                // And one that is not answered.
                _ = try right.ask(MachMessage(id: 1))
                #expect(try port.lines(2) == ["3", "\(MachMessage.sendOnceNotification)"])
            }
        }
    }

    @Test("a request whose reply could not be received is not handed on: its requester gets an error")
    func unheard() async throws {
        try await onBench(over: .socket) { bench in
            let (answers, behind) = (try bench.port(), try bench.port())
            try bench.serving({ _, message in
                var question = MachMessage(id: message.id + 1)
                question.setReplyRight(answers.makeSendOnceRight())
                try? message.reply(question)
            }) { right, _, _ in
                let onward = try bench.right(to: behind)
                let error = portError { () throws(PortError) in try onward.send(try right.ask(MachMessage(id: 1))) }
                #expect(error?.code == .invalidPort)
                #expect(try answers.next().id == MachMessage.sendOnceNotification)
                withExtendedLifetime(onward) {}
            }
        }
    }

    @Test(
        "a right put into a message in place of another notifies the maker of the other",
        arguments: TestTransport.inProcess
    )
    func replaced(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (one, other) = (try bench.port(), try bench.port())
            var message = carrying(one.makeSendOnceRight())
            message.setReplyRight(other.makeSendOnceRight())
            #expect(try one.next().id == MachMessage.sendOnceNotification)
            #expect(try other.tryReceive()?.id == nil)
            try message.reply(MachMessage(id: 6))
            #expect(try other.next().id == 6)
        }
    }

    @Test("a reply to a requester that has gone is lost without harm", arguments: TestTransport.withName)
    func requesterGone(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            for large in [false, true] {
                let right = try bench.right(to: port)
                _ = try? right.request(MachMessage(), sendLimit: longTimeout, replyLimit: .zero)
                let message = try port.next()
                withExtendedLifetime(right) {}
                _ = portError { () throws(PortError) in
                    try message.reply(MachMessage(bytes: pattern(large ? 1 << 20 : 1)))
                }
            }
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
        }
    }
}

/// A message with a reply right.
func carrying(_ right: consuming SendOnceRight) -> MachMessage {
    var message = MachMessage()
    message.setReplyRight(right)
    return message
}

/// Sends a request on, with its reply right and the next id.
func handOn(_ message: MachMessage, to right: SendRight) {
    guard let replyRight = message.takeReplyRight() else { return }
    var onward = MachMessage(id: message.id + 1, components: message.components)
    onward.setReplyRight(replyRight)
    try? right.send(onward)
}
