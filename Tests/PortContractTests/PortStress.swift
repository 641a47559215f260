// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Eight senders, four receivers: two run loops between which ports move, and two threads that receive without a loop.
// Ports end at random moments and are replaced; limits change; senders wait, try, and give up. Every message is
// delivered, bounced or refused exactly once, each sender's messages to one port are delivered in order and without a
// gap, and what messages carry is released. Over sockets two senders share a connection, and a bounced message may have
// waited in the kernel.

import ContractServices
import Glibc
import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// What one sender saw.
private struct Sent: Sendable {
    var accepted = 0
    var refused = 0
}

final class PortStress: Sendable {
    private static let slots = 4
    /// More than a packet holds.
    private static let large = pattern(70_000)
    /// Two million messages, or fewer where nothing is optimized, unless the environment says otherwise; in rounds, so
    /// that each ends long before the watchdog expires.
    static func rounds(over transport: TestTransport) -> [Int] {
        var count = 2_000_000
        #if PORT_FAULTS
        // Of fewer over sockets, buffers and rings would hold most when the ports end.
        count = transport == .memory ? TestSupport.rounds(40_000) : 8_000
        #endif
        if let text = sysEnvironment("PORT_TEST_STRESS") { count = Int(text) ?? count }
        let most = 200_000
        return [Int](repeating: most, count: count / most) + (count % most > 0 ? [count % most] : [])
    }

    private let round: UInt64  // immutable
    /// How many messages each sender sends.
    private let messages: Int  // immutable
    private let ports = Mutex<[StressPort]>([])
    private let retired = Mutex<[StressPort]>([])
    private let bench: Bench  // immutable
    private let ends = MessageEnds()  // guards itself
    /// A port to which rights travel.
    private let witness: MachPort  // guards itself
    private let loops = [Worker("first"), Worker("second")]  // immutable
    private let isOver = Atomic<Bool>(false)
    private let violations = Recorder<String>("violations")
    private let progress = Atomic<Int>(0)

    init(_ bench: Bench, round: Int, messages: Int) throws {
        self.bench = bench
        self.round = UInt64(round)
        self.messages = messages / StressPort.senders
        witness = try bench.port()
    }

    /// How many messages all senders send together.
    var total: Int { messages * StressPort.senders }

    func run() throws {
        let listener = Worker("ends of messages")
        try ends.begin(on: listener.loop)
        for slot in 0..<Self.slots { try open(slot, limit: 16) }
        let receivers = [2, 3].map { slot in runOnThread { try self.receive(slot) } }
        let senders = (0..<StressPort.senders).map { sender in runOnThread { try self.send(as: sender) } }
        try disturb(until: { senders.allSatisfy(\.hasEnded) })
        let sent = try senders.map { try $0.join() }
        isOver.store(true, ordering: .sequentiallyConsistent)
        for stressed in ports.withLock({ $0 }) { stressed.end() }
        for receiver in receivers { try receiver.join() }
        for loop in loops { try loop.perform {} }
        let deadline = Watchdog.deadline
        while ends.count < total, .now < deadline { yieldThread() }
        check(sent)
        ends.end()
        try listener.end()
        try checkRights()
        for loop in loops { try loop.end() }
        witness.invalidate()
    }

    /// No right that travelled is left: there is no sender once the one that was never sent is gone.
    private func checkRights() throws {
        var last: SendRight? = try bench.right(to: witness)
        try last?.send(MachMessage())
        _ = try witness.next()  // it has connected
        let notices = Counter("no-senders notices")
        try witness.notifyWhenNoSenders(on: loops[0].loop) { notices.increment() }
        try loops[0].perform {}
        #expect(notices.value == 0)
        last = nil
        withExtendedLifetime(last) {}
        _ = try witness.tryReceive()  // notices the end of a connection
        notices.waitUntilCount(1)
    }

    private func check(_ sent: [Sent]) {
        let (accepted, refused) = (sent.reduce(0) { $0 + $1.accepted }, sent.reduce(0) { $0 + $1.refused })
        let (delivered, bounced) = (
            ends.delivered.load(ordering: .acquiring), ends.bounced.load(ordering: .acquiring)
        )
        let all = retired.withLock { $0 } + ports.withLock { $0 }
        #expect(violations.elements == [])
        #expect(accepted + refused == total)
        #expect(delivered + bounced == accepted)
        #expect(ends.released.load(ordering: .acquiring) == refused)
        #expect(delivered == all.reduce(0) { $0 + $1.deliveredCount })
        #expect(delivered > accepted / 4)
    }

    /// Puts a new port into a slot.
    private func open(_ slot: Int, limit: Int) throws {
        let stressed = try StressPort(bench, slot: slot, limit: limit, handler: slot < 2 ? take : nil)
        let old = ports.withLock { ports -> StressPort? in
            guard ports.count > slot else {
                ports.append(stressed)
                return nil
            }
            defer { ports[slot] = stressed }
            return ports[slot]
        }
        if slot < 2 { try stressed.port.schedule(on: loops[slot].loop) }
        guard let old else { return }
        retired.withLock { $0.append(old) }
        old.end()
    }

    private func take(_ stressed: StressPort, _ message: MachMessage) {
        if let violation = stressed.take(message) { violations.append(violation) }
        progress.add(1, ordering: .relaxed)
        do { try message.reply(MachMessage(), within: longTimeout) } catch { violations.append("no reply: \(error)") }
    }

    private func receive(_ slot: Int) throws {
        while !isOver.load(ordering: .sequentiallyConsistent) {
            let stressed = ports.withLock { $0[slot] }
            do throws(PortError) {
                while let message = try stressed.port.receive(within: longTimeout) { take(stressed, message) }
                violations.append("nothing came for as long as the watchdog waits")
            } catch {
                if error.code != .invalidPort { throw error }
            }
        }
    }

    /// Moves, ends and changes ports at random while the senders are at work.
    private func disturb(until isDone: () -> Bool) throws {
        var generator = Seed.generator(stream: round * 1000 + 7)
        while !isDone() {
            let next = progress.load(ordering: .relaxed) + Int.random(in: 20...400, using: &generator)
            while progress.load(ordering: .relaxed) < next, !isDone() { sched_yield() }
            let slot = Int.random(in: 0..<Self.slots, using: &generator)
            let stressed = ports.withLock { $0[slot] }
            switch Int.random(in: 0..<10, using: &generator) {
            case 0: try open(slot, limit: Int.random(in: 1...40, using: &generator))
            case 1...2: stressed.port.setQueueLimit(Int.random(in: 1...40, using: &generator))
            default: if slot < 2 { try stressed.port.move(to: loops[Int.random(in: 0..<2, using: &generator)].loop) }
            }
        }
    }

    private func send(as sender: Int) throws -> Sent {
        var generator = Seed.generator(stream: round * 1000 + 100 + UInt64(sender))
        var (sent, next) = (Sent(), [ObjectIdentifier: Int32]())
        var current: [StressPort] = []
        for index in 0..<messages {
            let slot = Int.random(in: 0..<Self.slots, using: &generator)
            let stressed = ports.withLock { $0[slot] }
            if !current.contains(where: { $0 === stressed }) {
                current.append(stressed)  // retained, so that no other object gets its address in `next`
                next[ObjectIdentifier(stressed)] = 0
            }
            var message = MachMessage(id: next[ObjectIdentifier(stressed), default: 0], bytes: [UInt8(sender)])
            if index % 64 == 0 {
                message.components += [
                    .descriptor(try SharedDescriptor(duplicating: 0)), .right(witness.makeSendRight()),
                ]
            }
            if index % 256 == 1 { message.components.append(.bytes(Self.large)) }
            message.replyTarget = ReplyTarget(ends)
            if let right = stressed.right(of: sender), try Self.offer(message, to: right, &generator) {
                sent.accepted += 1
                next[ObjectIdentifier(stressed), default: 0] += 1
            } else {
                sent.refused += 1
            }
        }
        return sent
    }

    /// - Returns: whether the message was accepted.
    private static func offer(_ message: MachMessage, to right: SendRight, _ generator: inout SplitMix64) throws -> Bool
    {
        let limit: Duration =
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: .zero
            case 1: .microseconds(30)
            default: longTimeout
            }
        do throws(PortError) {
            if limit == .zero { return try right.trySend(message) }
            try right.send(message, within: limit)
            return true
        } catch {
            guard error.code == .deadName || error.code == .sendTimedOut && limit != longTimeout else { throw error }
            return false
        }
    }
}

@Suite("stress", .contract, .seeded) struct StressTests {
    @Test(
        "8 senders and 4 receivers, with ports that move and end: every message has exactly one end",
        arguments: TestTransport.inProcess)
    func ports(over transport: TestTransport) async throws {
        let rounds = PortStress.rounds(over: transport)
        let start = ContinuousClock.now
        for (round, messages) in rounds.enumerated() {
            try await onBench(over: transport) { try PortStress($0, round: round, messages: messages).run() }
        }
        print("stress in \(transport): \(rounds.reduce(0, +)) messages in \(ContinuousClock.now - start)")
    }
}
