// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Glibc
import NamedPortServer

/// The other process of the cases with ports: one port on the main loop that executes the messages.
final class PortChild {
    /// The requests, by message id.
    enum Request: Int32 {
        /// Send it back.
        case echo = 1
        /// Send 64 bytes back.
        case short
        /// Announces how many messages follow, in eight bytes.
        case announce
        /// One of them; the last one is answered.
        case counted
        /// Store these rights.
        case takeRights
        /// Send a number of messages over those rights, over each in turn.
        case send
        /// Reply how many bytes of the heap are allocated.
        case heap
        /// Ask the launcher, and reply then, whatever came of that.
        case askBack
        /// Read the first and the last byte of the memory, and send 64 bytes back: as a reply if one is expected.
        case ends
        /// Read the whole memory, and send 64 bytes back.
        case all
        /// Copy the memory into a list, and send 64 bytes back.
        case copies
    }

    private let launcher: SendRight
    private let named: LocalMessagePort?
    private let port: MachPort

    /// Starts with a wait strategy and, optionally, a name.
    init(_ arguments: [String]) throws {
        guard let launcher = try SendRight.bootstrap() else { throw BenchmarkFailure("this child has no launcher") }
        self.launcher = launcher
        ThreadRunLoop.current.waitStrategy = WaitStrategy(word: arguments.first)
        let work = PortChildWork(launcher)
        if arguments.count > 1 {
            let answer = [UInt8](repeating: 7, count: Packet.size)
            let named = try LocalMessagePort(name: arguments[1]) { _, _ in answer }
            (self.named, port) = (named, named.port)
        } else {
            named = nil
            port = MachPort(queueLimit: PortSink.queueLimit) { _, message in work.take(message) }
        }
    }

    func run() throws {
        try launcher.notifyWhenDead { _ in exit(EXIT_SUCCESS) }
        try port.schedule()
        try launcher.checkIn(port)
        ThreadRunLoop.current.run()
    }
}

/// What the port does with its messages.
///
/// @unchecked: used on the main loop's thread only.
private final class PortChildWork: @unchecked Sendable {
    private let launcher: SendRight
    private let short = MachMessage(id: 1, bytes: Array(repeating: 7, count: Packet.size))
    private var left: UInt64 = 0
    private var rights: [SendRight] = []
    private var next = 0

    init(_ launcher: SendRight) {
        self.launcher = launcher
    }

    func take(_ message: MachMessage) {
        do {
            switch PortChild.Request(rawValue: message.id) {
            case .echo: try launcher.send(message, within: .seconds(10))
            case .short: try launcher.send(short, within: .seconds(10))
            case .announce: left = try message.content()
            case .counted: try count()
            case .takeRights: rights = message.rights
            case .send: try send(try message.content(as: Int.self))
            case .heap: try message.reply(content: Int(bare_heap_bytes()))
            case .askBack:
                _ = try? launcher.request(short)
                try? message.reply(short)
            case .ends:
                try BodyReader.readEnds(of: message)
                if message.expectsReply { return try message.reply(short) }
                try launcher.send(short, within: .seconds(10))
            case .all:
                try BodyReader.readAll(of: message)
                try launcher.send(short, within: .seconds(10))
            case .copies:
                try BodyReader.copy(from: message)
                try launcher.send(short, within: .seconds(10))
            case nil: break
            }
        } catch {
            Program.complain("child: \(error)")
            exit(EXIT_FAILURE)
        }
    }

    private func count() throws {
        left -= 1
        if left == 0 { try launcher.send(short, within: .seconds(10)) }
    }

    private func send(_ number: Int) throws {
        for _ in 0..<number {
            next = (next + 1) % rights.count
            try rights[next].send(PortSink.makeMessage(), within: .seconds(10))
        }
    }
}
