// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import MessagePort
import TestSupport
import Testing

/// Eight senders of this side, one port of the far side that ends at a random moment: every message is delivered,
/// bounced or refused, exactly once, and the messages of one sender are delivered in order. Each carries a send-once
/// right to a port of this side that receives a report of the message's end.
struct FarStress: Sendable {
    private static let senders = 8
    private static let messages = 60
    private static let wasDelivered: Int32 = 1

    let bench: Bench
    let round: UInt64

    func run() throws {
        var generator = Seed.generator(stream: round)
        let total = Self.senders * Self.messages
        let lifetime = round == 0 ? total : Int.random(in: 0..<total, using: &generator)
        let limit = Int.random(in: 1...20, using: &generator)
        try bench.serving(queueLimit: limit, .accept) { _, port in
            let (ends, reporter) = (Recorder<Int32>("ends of messages"), Worker("reports"))
            let reports = try bench.port { _, message in ends.append(message.id) }
            try reports.schedule(on: reporter.loop)
            let rights = try (0..<Self.senders).map { _ in try bench.right(to: port) }
            let threads = rights.enumerated().map { sender, right in
                runOnThread {
                    try sendReported(
                        Self.messages, over: right, from: sender, as: Array("\(sender)".utf8), reports,
                        Seed.generator(stream: round * 100 + UInt64(sender)))
                }
            }
            ends.waitUntilCount(lifetime)
            try port.invalidate()
            let sent = try threads.map { try $0.join() }
            let all = ends.waitUntilCount(total)
            try port.settle()
            check(try port.lines(), all, sent)
            reports.invalidate()
            try reporter.end()
            #expect(ends.count == total)
        }
    }

    /// delivered + bounced + refused = all; none is reported twice, and none is forgotten.
    private func check(_ delivered: [String], _ all: [Int32], _ sent: [Int]) {
        #expect(all.count { $0 == Self.wasDelivered } == delivered.count)
        #expect(all.count { $0 == MachMessage.sendOnceNotification } == all.count - delivered.count)
        for sender in 0..<Self.senders {
            let lines = delivered.filter { $0.hasPrefix("\(sender) ") }
            #expect(lines == (0..<lines.count).map { "\(sender) \($0)" })
            #expect(lines.count <= sent[sender])
        }
    }
}
