// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import RunLoopCore

/// What a port counts: messages that have come, messages that wait, connected clients. All of one moment, but ``waits``.
///
/// ``MachPort/statistics`` returns those of a port of this process, `SendRight.statistics(within:)` those of any
/// port.
public struct PortStatistics: Hashable, Sendable {
    /// How many messages have come into the queue since the port was made; those that were dropped later included.
    public var messageCount = 0
    /// How many bytes the byte components of those messages had.
    public var byteCount = 0
    /// How many messages were dropped since the port was made: ``MachPort/droppedMessageCount``.
    public var droppedMessageCount = 0
    /// How many messages wait in the queue: ``MachPort/queueCount``. A query of another process makes the port receive
    /// what has arrived, as far as there is room.
    public var queueCount = 0
    /// How many messages may wait in the queue.
    public var queueLimit = 0
    /// The most messages that have waited in the queue at once: ``MachPort/queueHighWaterMark``.
    public var queueHighWaterMark = 0
    /// How many connections of other processes the port has. A process makes one for all its rights to a port. A
    /// process that only asks for statistics, or taps the port, is not counted.
    public var clientCount = 0
    /// How often the loops that serve the port have slept and spun since they were made, for whatever they waited:
    /// `ThreadRunLoop.waitCounts`, added up. Zero while no loop serves the port.
    public var waits = WaitCounts()

    /// Makes statistics in which everything is zero.
    public init() {}
}

extension PortStatistics {
    /// The numbers, in the order in which they cross to another process. New ones come last.
    private var numbers: [Int] {
        [
            messageCount, byteCount, droppedMessageCount, queueCount, queueLimit, queueHighWaterMark, clientCount,
            waits.sleeps, waits.spinsThatPaid, waits.spinsThatDidNot,
        ]
    }

    /// The fewest and the most bytes of an answer. A later version may send more numbers, which this one ignores.
    private static let payloadLimits = 10 * 8...1024

    var payload: [UInt8] {
        var bytes: [UInt8] = []
        for number in numbers { bytes.append(littleEndian: UInt64(clamping: number)) }
        return bytes
    }

    init?(payload: [UInt8]) {
        guard Self.payloadLimits.contains(payload.count), payload.count % 8 == 0 else { return nil }
        func number(_ index: Int) -> Int { Int(clamping: payload.littleEndian(at: index * 8) as UInt64) }
        (messageCount, byteCount, droppedMessageCount) = (number(0), number(1), number(2))
        (queueCount, queueLimit, queueHighWaterMark) = (number(3), number(4), number(5))
        clientCount = number(6)
        (waits.sleeps, waits.spinsThatPaid, waits.spinsThatDidNot) = (number(7), number(8), number(9))
    }
}
