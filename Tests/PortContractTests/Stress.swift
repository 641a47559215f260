// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import MessagePort
import Synchronization
import TestSupport
import Testing

/// Eight senders, one port that ends at a random moment: every message is delivered, bounced or refused, exactly once,
/// and the messages of one sender are delivered in order. Each message carries a send-once right to a port that
/// receives a report of each message's end.
struct Stress: Sendable {
    private static let senders = 8
    private static let messages = 200
    private static let wasDelivered: Int32 = 1

    let bench: Bench
    let round: UInt64

    init(_ bench: Bench, _ round: UInt64) {
        self.bench = bench
        self.round = round
    }

    func run() throws {
        var generator = Seed.generator(stream: round)
        let lifetime = round == 0 ? Int.max : Int.random(in: 0..<Self.senders * Self.messages, using: &generator)
        let limit = Int.random(in: 1...20, using: &generator)
        let delivered = Recorder<MachMessage>()
        let port = try bench.port(queueLimit: limit) { port, message in
            delivered.append(message)
            if delivered.count >= lifetime { port.invalidate() }
            try? message.reply(MachMessage(id: Self.wasDelivered), within: longTimeout)
        }
        let ends = Recorder<Int32>()
        let reports = try bench.port { _, message in ends.append(message.id) }
        let (worker, reporter) = (Worker(), Worker("reports"))
        try reports.schedule(on: reporter.loop)
        try port.schedule(on: worker.loop)
        // The port may end with the first message, and there are no new rights to a dead port.
        let rights = try (0..<Self.senders).map { _ in try bench.right(to: port) }
        let threads = rights.enumerated().map { sender, right in
            runOnThread {
                try sendReported(
                    Self.messages, over: right, from: sender, as: [UInt8(sender)], reports,
                    Seed.generator(stream: round * 100 + UInt64(sender)))
            }
        }
        let sent = try threads.map { try $0.join() }
        if lifetime == .max {
            let total = sent.reduce(0, +)
            #expect(total == Self.senders * Self.messages)
            delivered.waitUntilCount(total)
        }
        port.invalidate()
        try worker.end()
        check(delivered.elements, sent)
        // delivered + bounced + refused = all; none is reported twice, and none is forgotten.
        let all = ends.waitUntilCount(Self.senders * Self.messages)
        #expect(all.count == Self.senders * Self.messages)
        #expect(all.count { $0 == Self.wasDelivered } == delivered.count)
        #expect(all.count { $0 == MachMessage.sendOnceNotification } == all.count - delivered.count)
        #expect(all.count - delivered.count >= Self.senders * Self.messages - sent.reduce(0, +))
        reports.invalidate()
        try reporter.end()
        #expect(ends.count == all.count)
    }

    private func check(_ delivered: [MachMessage], _ sent: [Int]) {
        for sender in 0..<Self.senders {
            let ids = delivered.filter { $0.bytes == [UInt8(sender)] }.map(\.id)
            // In order, without gaps and none twice; no more than were accepted.
            #expect(ids == Array(0..<Int32(ids.count)))
            #expect(ids.count <= sent[sender])
            if bench.transport == .memory && delivered.count == sent.reduce(0, +) { #expect(ids.count == sent[sender]) }
        }
        for message in delivered { #expect(message.byteParts.last.map { $0 == pattern($0.count) } == true) }
    }
}

/// Sends messages of random sizes, each with a name of its sender first, until the port ends, and with a send-once
/// right to a port that receives a report of each message's end.
///
/// - Returns: how many messages were accepted.
func sendReported(
    _ count: Int, over right: SendRight, from sender: Int, as name: [UInt8], _ reports: MachPort,
    _ generator: SplitMix64
) throws -> Int {
    var generator = generator
    var sent = 0
    for index in 0..<count {
        let size =
            Int.random(in: 0..<5, using: &generator) == 0 ? 70_000 : Int.random(in: 0..<300, using: &generator)
        var message = MachMessage(id: Int32(index), components: [.bytes(name), .bytes(pattern(size))])
        message.setReplyRight(reports.makeSendOnceRight())
        let error = portError { () throws(PortError) in try right.send(message) }
        message = MachMessage()
        if error == nil { sent += 1 }
        if let error { #expect(error.code == .deadName, "\(error), message \(index) of \(sender), \(size) bytes") }
    }
    return sent
}
