// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Records what it receives.
final class SilentReceiver: ReplyReceiver {
    private struct State {
        var ids: [Int32] = []
        var failures: [PortError.Code] = []
        var refusal: PortError?
    }

    private let state = Mutex(State())

    /// Refuses every reply with an error, if there is one.
    init(refusing refusal: PortError? = nil) {
        state.withLock { $0.refusal = refusal }
    }

    var ids: [Int32] { state.withLock { $0.ids } }
    var failures: [PortError.Code] { state.withLock { $0.failures } }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        let refusal = state.withLock { state in
            if state.refusal == nil { state.ids.append(message.id) }
            return state.refusal
        }
        if let refusal { throw refusal }
    }

    func fail(_ error: PortError) {
        state.withLock { $0.failures.append(error.code) }
    }

    func expectReply(over connection: any ReplyConnection) {}

    /// A message that this one waits for an answer to.
    func question() -> MachMessage {
        var message = MachMessage()
        message.replyTarget = ReplyTarget(self)
        return message
    }
}

@Suite("reply rights", .leakCheck) struct ReplyTargetTests {
    @Test("a target is consumed once, also by many threads")
    func consumedOnce() throws {
        for _ in 0..<200 {
            let message = SilentReceiver().question()
            let counter = TakeCounter()
            try onThreads(3) { _ in
                if let right = message.takeReplyRight() {
                    counter.count.add(1, ordering: .relaxed)
                    right.drop()
                }
            }
            #expect(counter.count.load(ordering: .relaxed) == 1)
        }
    }

    private final class TakeCounter: Sendable {
        let count = Atomic<Int>(0)
    }

    @Test("each end of a right is reported exactly once")
    func heardOnce() throws {
        for end in 0..<6 {
            let receiver = SilentReceiver()
            do {
                let message = receiver.question()
                #expect(message.expectsReply)
                switch end {
                case 0: try message.reply(MachMessage(id: 1))
                case 1: try message.takeReplyRight()?.send(MachMessage(id: 1))
                case 2: message.takeReplyRight()?.drop()
                case 3: _ = message.takeReplyRight()
                case 4: message.replyTarget?.fail(PortError(.peerDied))
                default: break
                }
                if end < 5 { #expect(!message.expectsReply) }
            }
            #expect(receiver.ids == (end < 2 ? [1] : []))
            #expect(receiver.failures == (end < 2 ? [] : [end == 4 ? .peerDied : .replyDropped]))
        }
    }

    @Test("a reply that is refused throws, and the requester learns that none will come")
    func refused() throws {
        let receiver = SilentReceiver(refusing: PortError(.deadName))
        let message = receiver.question()
        #expect(portError { () throws(PortError) in try message.reply(MachMessage()) }?.code == .deadName)
        #expect(receiver.failures == [.replyDropped])
        #expect(portError { () throws(PortError) in try message.reply(MachMessage()) }?.code == .noReplyRight)
    }

    @Test("a right that was put into another message works there, once")
    func moved() throws {
        let receiver = SilentReceiver()
        let first = receiver.question()
        var second = MachMessage(id: 2)
        guard let right = first.takeReplyRight() else { throw PortError(.noReplyRight) }
        second.setReplyRight(right)
        #expect(second.expectsReply)
        try second.reply(MachMessage(id: 7))
        #expect(receiver.ids == [7])
        #expect(portError { () throws(PortError) in try first.reply(MachMessage()) }?.code == .noReplyRight)
    }

    @Test("a slot keeps the first answer, and refuses what comes after it was consumed")
    func slot() async throws {
        try await onNewThread {
            let slot = ReplySlot(wakes: .current)
            #expect(slot.isWaiting)
            try slot.deliver(MachMessage(id: 1), until: .distantPast)
            #expect(!slot.isWaiting)
            #expect(
                portError { () throws(PortError) in try slot.deliver(MachMessage(id: 2), until: .distantPast) }?.code
                    == .deadName)
            slot.fail(PortError(.peerDied))
            #expect(try slot.take().id == 1)
            #expect(portError { () throws(PortError) in _ = try slot.take() }?.code == .replyTimedOut)
            let failed = ReplySlot(wakes: .current)
            failed.fail(PortError(.replyDropped))
            #expect(portError { () throws(PortError) in _ = try failed.take() }?.code == .replyDropped)
            let late = ReplySlot(wakes: .current)
            #expect(portError { () throws(PortError) in _ = try late.take() }?.code == .replyTimedOut)
            #expect(
                portError { () throws(PortError) in try late.deliver(MachMessage(), until: .distantPast) }?.code
                    == .deadName)
        }
    }

    @Test("a thread's slot is reused for its request after the next, as new, once no message refers to it")
    func reuse() async throws {
        try await onNewThread {
            weak var first: ReplySlot?
            var late: ReplyTarget?
            do {
                let slot = SlotCache.slot(on: .current)
                let target = ReplyTarget(slot)
                target.noteRead()
                #expect(target.take())
                slot.giveUp(PortError(.replyTimedOut))
                #expect(portError { () throws(PortError) in _ = try slot.take() }?.delivery == .read)
                #expect(!slot.isWaiting && !slot.isBound)
                (first, late) = (slot, target)
            }
            func next() -> ReplySlot { SlotCache.slot(on: .current) }
            #expect(next() !== first)
            #expect(next() !== first, "its message is still there")
            withExtendedLifetime(late) {}
            late = nil
            #expect(first == nil)
            first = next()
            let number = first?.waitNumber
            first?.giveUp(PortError(.replyTimedOut))
            _ = next()
            let slot = next()
            #expect(slot === first)
            #expect(slot.isWaiting && slot.isBound && slot.waitNumber != number)
            slot.giveUp(PortError(.replyTimedOut))
            #expect(portError { () throws(PortError) in _ = try slot.take() }?.delivery != .read)
        }
    }

    @Test("requests of a handler within a request have slots of their own")
    func nested() async throws {
        try await onNewThread {
            let slots = (0..<4).map { _ in SlotCache.slot(on: .current) }
            #expect(Set(slots.map { ObjectIdentifier($0) }).count == slots.count)
        }
    }

    /// Notes whether the requester waits while this is notified that the request is abandoned.
    private final class Callee: ReplyConnection {
        let slot = ReplySlot(wakes: .current)
        let states = Recorder<Bool>()

        func replySource() throws(PortError) -> RunLoopSource? { nil }
        func beginBusyPolling(on loop: ThreadRunLoop) {}
        func giveUp(token: UInt64) { states.append(slot.isWaiting) }
    }

    @Test("the requester waits on until the callee was notified that the request is abandoned")
    func reporting() async throws {
        try await onNewThread {
            let callee = Callee()
            callee.slot.passAbandonment(to: callee, token: 1)
            callee.slot.giveUp(PortError(.wouldDeadlock))
            #expect(callee.states.elements == [true])
            #expect(!callee.slot.isWaiting)
            #expect(portError { () throws(PortError) in _ = try callee.slot.take() }?.code == .wouldDeadlock)
        }
    }
}
