// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort

/// What must hold for every sequence of bytes that is read as the snapshot of a port that has come.
public enum SnapshotFuzzing {
    /// Traps when the bytes are taken for a port that cannot be, or cannot go on.
    public static func check(_ bytes: [UInt8]) {
        guard let snapshot = PortSnapshot(encoded: bytes) else { return }
        precondition(snapshot.encoded == bytes, "a snapshot has one form")
        precondition(snapshot.descriptorCount > 0, "a port has no listener")
        let port = MachPort(queueLimit: snapshot.queueLimit, queuePolicy: snapshot.policy)
        let indices = snapshot.messages.map(\.connection) + snapshot.presence.announcers
        precondition(indices.allSatisfy { $0.map(snapshot.connections.indices.contains) ?? true }, "no connection")
        port.localPort.state.withLock { state in
            state.mailbox.resume([], snapshot.counts)
            for _ in 0..<2 {
                // One more message than the queue has room for.
                var message: MachMessage? = MachMessage(id: 1)
                _ = state.mailbox.admit(&message, exceedingLimit: true)
            }
        }
        _ = port.statistics
        for connection in snapshot.connections {
            var requests = RequestTable()
            requests.resume(after: connection.lastToken)
            precondition(requests.lastToken < .max, "no token is left")
            guard let partial = connection.partial else { continue }
            var assembly = PacketAssembly()
            if assembly.resume(partial, []) { precondition(assembly.isBegun, "what has come is lost") }
        }
        port.invalidate()
    }
}
