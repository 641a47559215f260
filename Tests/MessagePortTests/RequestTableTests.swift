// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization
import Testing

@testable import MessagePort

/// The requests of a connection: a plain value, without a connection.
@Suite("RequestTable") struct RequestTableTests {
    /// A receiver that counts what it is notified of.
    private final class Receiver: ReplyReceiver {
        let failures = Atomic<Int>(0)

        func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {}
        func fail(_ error: PortError) { failures.add(1, ordering: .relaxed) }
        func expectReply(over connection: any ReplyConnection) throws(PortError) {}
    }

    /// Holds the table, as a connection does, so that an expectation can change it.
    private final class Connection {
        var requests = RequestTable()

        func end(_ token: UInt64) -> ReplyTarget? { requests.end(token) }
        func didSend(_ token: UInt64) -> ReplyTarget? { requests.didSend(token) }
        func begin(_ target: ReplyTarget) -> UInt64 { requests.begin(target) }
        func settle(_ token: UInt64) -> [@Sendable () -> Void] { requests.settle(token) }
        func abandon(_ token: UInt64) -> [@Sendable () -> Void] { requests.abandon(token) }
        func abandonAll() -> [@Sendable () -> Void] { requests.abandonAll() }
        func endAllSent() -> (unanswered: [ReplyTarget], abandoned: [@Sendable () -> Void]) { requests.endAllSent() }
        func awaitAbandonment(of token: UInt64, _ handler: @escaping @Sendable () -> Void) -> Bool {
            requests.awaitAbandonment(of: token, handler)
        }
    }

    private final class Calls: Sendable {
        let count = Atomic<Int>(0)
        var one: @Sendable () -> Void { { self.count.add(1, ordering: .relaxed) } }
    }

    @Test("tokens begin with one, and are never used twice")
    func tokens() {
        let connection = Connection()
        #expect(connection.requests.lastToken == 0 && !connection.requests.isAwaited(0))
        let target = ReplyTarget(Receiver())
        #expect(connection.begin(target) == 1)
        #expect(connection.end(1) === target)
        #expect(connection.begin(target) == 2)
        #expect(connection.requests.lastToken == 2)
    }

    @Test("a request is awaited until it ends, and ends once")
    func once() {
        let connection = Connection()
        let target = ReplyTarget(Receiver())
        let token = connection.begin(target)
        #expect(connection.requests.isAwaited(token) && connection.requests.awaitsReply)
        #expect(connection.didSend(token) === target)
        #expect(connection.end(token) === target)
        #expect(connection.end(token) == nil)
        #expect(connection.didSend(token) == nil)
        #expect(!connection.requests.awaitsReply)
    }

    @Test(
        "the end of a connection ends the requests that were sent, and leaves those that are being sent to their senders"
    )
    func ending() {
        let connection = Connection()
        let (sent, sending) = (ReplyTarget(Receiver()), ReplyTarget(Receiver()))
        _ = connection.didSend(connection.begin(sent))
        let token = connection.begin(sending)
        let calls = Calls()
        connection.requests.addUnanswered(7)
        #expect(!connection.awaitAbandonment(of: 7, calls.one))
        let ended = connection.endAllSent()
        #expect(ended.unanswered.count == 1 && ended.unanswered.first === sent)
        #expect(ended.abandoned.count == 1)
        #expect(connection.requests.isAwaited(token))
        let again = connection.endAllSent()
        #expect(again.unanswered.isEmpty && again.abandoned.isEmpty)
        #expect(connection.end(token) === sending)
    }

    @Test("a requester that gives up is noticed once by each handler, and by a later one at once")
    func abandonment() {
        let connection = Connection()
        let calls = Calls()
        connection.requests.addUnanswered(7)
        #expect(
            connection.requests.hasUnanswered && connection.requests.isUnanswered(7)
                && !connection.requests.isAbandoned(7))
        #expect(!connection.awaitAbandonment(of: 7, calls.one))
        #expect(!connection.awaitAbandonment(of: 7, calls.one))
        let handlers = connection.abandon(7)
        #expect(handlers.count == 2)
        #expect(connection.requests.isAbandoned(7) && connection.requests.isUnanswered(7))
        #expect(connection.abandon(7).isEmpty)
        #expect(connection.awaitAbandonment(of: 7, calls.one))
        #expect(connection.settle(7).isEmpty)
        #expect(!connection.requests.hasUnanswered && !connection.requests.isAbandoned(7))
    }

    @Test("a request is bound to its receiver until its right leaves the message, it is abandoned, or answered")
    func bound() {
        let connection = Connection()
        let calls = Calls()
        for token: UInt64 in 1...3 { connection.requests.addUnanswered(token) }
        #expect(connection.requests.isBound(1) && !connection.requests.isBound(4))
        connection.requests.noteRightRemoved(1)
        connection.requests.noteRightRemoved(4)
        #expect(!connection.awaitAbandonment(of: 1, calls.one))
        #expect(!connection.requests.isBound(1) && connection.requests.isUnanswered(1))
        #expect(!connection.requests.isUnanswered(4) && connection.abandon(1).count == 1)
        #expect(!connection.awaitAbandonment(of: 2, calls.one) && connection.requests.isBound(2))
        connection.requests.noteRightRemoved(2)
        #expect(connection.settle(2).count == 1 && !connection.requests.isBound(2))
        #expect(connection.abandon(3).isEmpty && !connection.requests.isBound(3))
    }

    @Test("a request that was answered has no handlers any more, and cannot be given up")
    func settled() {
        let connection = Connection()
        let calls = Calls()
        connection.requests.addUnanswered(7)
        #expect(!connection.awaitAbandonment(of: 7, calls.one))
        #expect(connection.settle(7).count == 1)
        #expect(connection.settle(7).isEmpty)
        #expect(connection.abandon(7).isEmpty)
        #expect(!connection.awaitAbandonment(of: 7, calls.one))
        #expect(connection.abandonAll().isEmpty)
    }

    @Test("a peer that is gone gives up all its requests, each once")
    func gone() {
        let connection = Connection()
        let calls = Calls()
        for token: UInt64 in 1...3 {
            connection.requests.addUnanswered(token)
            #expect(!connection.awaitAbandonment(of: token, calls.one))
        }
        #expect(connection.abandon(2).count == 1)
        #expect(connection.abandonAll().count == 2)
        #expect(connection.abandonAll().isEmpty)
        for token: UInt64 in 1...3 { #expect(connection.requests.isAbandoned(token)) }
        #expect(calls.count.load(ordering: .relaxed) == 0)  // the caller calls them, without a lock
    }
}
