// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// A port of the stress test, and what is known of its messages.
final class StressPort: Sendable {
    static let senders = 8
    /// How many senders share a right: over sockets, a connection.
    private static let sharers = 2

    let slot: Int  // immutable
    let port: MachPort  // immutable
    private let rights: Mutex<[SendRight]>
    /// What each sender's next message will be.
    private let expected = Mutex([Int32](repeating: 0, count: StressPort.senders))
    private let busy = Atomic<Int>(0)

    init(_ bench: Bench, slot: Int, limit: Int, handler: (@Sendable (StressPort, MachMessage) -> Void)?) throws {
        self.slot = slot
        port = try bench.port(queueLimit: limit)
        rights = Mutex(try (0..<StressPort.senders / StressPort.sharers).map { [port] _ in try bench.right(to: port) })
        guard let handler else { return }
        port.setHandler { [unowned self] _, message in handler(self, message) }
    }

    /// The sender's right; nil when the port has ended.
    func right(of sender: Int) -> SendRight? {
        rights.withLock { $0.isEmpty ? nil : $0[sender / StressPort.sharers] }
    }

    /// Ends the port, then releases the rights.
    func end() {
        port.invalidate()
        let old = rights.withLock { rights in
            defer { rights = [] }
            return rights
        }
        withExtendedLifetime(old) {}
    }

    var deliveredCount: Int { expected.withLock { $0.reduce(0) { $0 + Int($1) } } }

    /// Checks a message: its sender's next one, and no other handler at work.
    ///
    /// - Returns: what is wrong; nil when nothing is.
    func take(_ message: MachMessage) -> String? {
        let isAlone = busy.add(1, ordering: .acquiringAndReleasing).newValue == 1
        let (sender, next) = expected.withLock { expected in
            let sender = Int(message.bytes[0])
            defer { expected[sender] += 1 }
            return (sender, expected[sender])
        }
        busy.subtract(1, ordering: .acquiringAndReleasing)
        if !isAlone { return "two handlers at once in slot \(slot)" }
        return message.id == next ? nil : "\(message.id) instead of \(next) from \(sender) in slot \(slot)"
    }
}

/// Records the end of each message.
final class MessageEnds: ReplyReceiver {
    let delivered = Atomic<Int>(0)
    let bounced = Atomic<Int>(0)
    let released = Atomic<Int>(0)
    /// Its loop reads the answers that come over a socket.
    private let answers = MachPort()  // guards itself

    /// Starts to receive answers.
    func begin(on loop: ThreadRunLoop) throws { try answers.schedule(on: loop) }

    /// Stops receiving: no answer is awaited any more.
    func end() { answers.invalidate() }

    /// How many messages have come to an end.
    var count: Int {
        delivered.load(ordering: .acquiring) + bounced.load(ordering: .acquiring) + released.load(ordering: .acquiring)
    }

    func deliver(_ message: MachMessage, until deadline: MonotonicInstant) throws(PortError) {
        delivered.add(1, ordering: .releasing)
    }

    func fail(_ error: PortError) {
        // The last copy of a message that was refused releases its reply right.
        if error.code == .peerDied {
            bounced.add(1, ordering: .releasing)
        } else {
            released.add(1, ordering: .releasing)
        }
    }

    func expectReply(over connection: any ReplyConnection) throws(PortError) {
        try answers.localPort.openSockets().add(over: connection)
    }
}
