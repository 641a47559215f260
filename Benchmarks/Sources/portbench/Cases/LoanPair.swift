// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import NamedPortServer

/// Makes messages with a body in memory, each in memory of its own.
///
/// @unchecked: the thread that sends uses it; the one that makes it does so before.
final class BodyWriter: @unchecked Sendable {
    private let size: Int
    private let grade: MessageMemory.Grade
    private let request: PortChild.Request
    private let pool = MemoryPool()
    private let list: [UInt8]
    private var number: UInt64 = 0

    /// Bodies of `size` bytes, of which the other side reads what `request` says: for all of them, all are written, and
    /// for a copy they are copied from a list.
    init(_ size: Int, _ grade: MessageMemory.Grade, _ request: PortChild.Request) {
        (self.size, self.grade, self.request) = (size, grade, request)
        list = [UInt8](repeating: 7, count: request == .copies ? size : 0)
    }

    func makeMessage() throws -> MachMessage {
        var loan = try grade == .sealed ? LoanedMemory(sealable: size) : pool.loan(size)
        switch request {
        case .all:
            number += 1
            loan.withBytes { bytes in
                bytes.withUnsafeMutableBytes { [number] in bare_fill_words($0.baseAddress, $0.count, number) }
            }
        case .copies: loan.withBytes { bytes in bytes.withUnsafeMutableBytes { [list] in $0.copyBytes(from: list) } }
        default: break
        }
        return MachMessage(id: request.rawValue, memory: loan.freeze())
    }
}

/// Reads bodies where they are.
enum BodyReader {
    static func readEnds(of message: MachMessage) throws {
        // Memory that nobody has written is zeros.
        try read(message) { $0.first == 0 && $0.last == 0 }
    }

    static func copy(from message: MachMessage) throws {
        let list = message.memory.first?.copy()
        if list?.last != 7 { throw BenchmarkFailure("memory was not as written") }
    }

    static func readAll(of message: MachMessage) throws {
        // All words are the same.
        try read(message) { bytes in
            let count = UInt64(bytes.count / MemoryLayout<UInt64>.size)
            return bare_sum_words(bytes.baseAddress, bytes.count) == bytes.load(as: UInt64.self) &* count
        }
    }

    private static func read(_ message: MachMessage, _ isRight: (UnsafeRawBufferPointer) -> Bool) throws {
        guard let memory = message.memory.first else { throw BenchmarkFailure("a message without memory") }
        if memory.grade == .copied { throw BenchmarkFailure("memory was copied") }
        if !memory.withBytes({ $0.withUnsafeBytes(isRight) }) { throw BenchmarkFailure("memory was not as written") }
    }
}

extension Contestant {
    /// Round trips between run loops of two processes: a body in memory there, 64 bytes back. The loops are busy unless
    /// said otherwise.
    static func loanPair(
        _ size: Int, _ grade: MessageMemory.Grade = .shared, _ request: PortChild.Request = .ends,
        waiting strategy: WaitStrategy? = nil, on placement: Placement
    ) throws -> Contestant {
        let (rally, writer) = (Rally(), BodyWriter(size, grade, request))
        let child = try PortProcess(strategy ?? placement.busy, on: placement)
        let right = child.right
        child.worker.port.setHandler { _, _ in
            rally.answered { try right.send(writer.makeMessage(), within: .seconds(10)) }
        }
        return Contestant(
            name: grade == .sealed ? "ports, sealed" : "ports",
            run: { count, laps in
                try rally.run(count, laps) {
                    child.thread.loop.perform {
                        rally.begin { try right.send(writer.makeMessage(), within: .seconds(10)) }
                    }
                }
            },
            end: child.end)
    }

    /// Requests of this thread to another process with a body in memory, answered with 64 bytes.
    static func loanRequest(_ size: Int, on placement: Placement) throws -> Contestant {
        let writer = BodyWriter(size, .shared, .ends)
        let child = try PortProcess(placement.busy, on: placement)
        return Contestant(
            name: "ports, SendRight.request",
            run: { [right = child.right] count, laps in
                try placement.near.run(waiting: placement.busy) {
                    try timed(count, laps) { _ = try right.request(writer.makeMessage()) }
                }
            },
            end: child.end)
    }

    /// Round trips between two run loops of this process: a body in memory there, 64 bytes back.
    static func loanThreadPair(_ size: Int, on placement: Placement) throws -> Contestant {
        let writer = BodyWriter(size, .shared, .ends)
        let short = MachMessage(id: 1, bytes: Array(repeating: 7, count: Packet.size))
        let pair = try PortPair(
            placement.busy, on: placement, there: { _ in try writer.makeMessage() },
            back: { message in
                try BodyReader.readEnds(of: message)
                return short
            })
        return Contestant(name: "ports", run: pair.run, end: pair.end)
    }
}
