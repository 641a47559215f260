// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

// The packets of probes, which follow the waits of threads from process to process: see `WaitProbes`. They are handled
// on the I/O thread: the threads of a port that cannot be answered all wait.
extension SocketConnection {
    /// Asks the process at the other end whether a thread may answer the request that asked with the token. Never
    /// waits.
    func send(_ probe: WaitProbe, about token: UInt64) {
        if isInherited { return }
        enqueue(OutgoingPacket(header: PacketHeader(probe, about: token)))
        // The threads that would read it may all wait, and the request may be ahead of it.
        sender.knock(.probing, over: self)
    }

    /// Answers that none may. Never waits.
    func answer(_ probe: WaitProbe, about token: UInt64, hasReturned: Bool) {
        if isInherited { return }
        enqueue(OutgoingPacket(header: PacketHeader(answering: probe, about: token, hasReturned: hasReturned)))
    }

    /// Whether only the receiver of the request that the peer has made under the token can answer it.
    func isOwed(_ token: UInt64) -> Bool { state.withLock { $0.requests.isBound(token) } }

    /// The peer asks about a request of its own.
    func didReceive(_ probe: WaitProbe, about token: UInt64) {
        handleLater(ProbeBacklog.Packet(probe: probe, hasReturned: nil), about: token)
    }

    /// The peer has answered about a request of this end's.
    func didReceiveAnswer(_ probe: WaitProbe, about token: UInt64, hasReturned: Bool) {
        handleLater(ProbeBacklog.Packet(probe: probe, hasReturned: hasReturned), about: token)
    }

    /// Handles a packet with no lock held, if it is about a request that has not ended.
    private func handleLater(_ packet: ProbeBacklog.Packet, about token: UInt64) {
        guard let loop = try? IOThread.loop() else { return }
        let isFirst = state.withLock { state in
            let isOpen =
                packet.hasReturned == nil ? state.requests.isBound(token) : state.requests.isAwaited(token)
            return isOpen && state.probes.add(packet, about: token)
        }
        if isFirst { loop.perform { if !self.isInherited { self.handleProbes() } } }
    }

    private func handleProbes() {
        for (token, packets) in state.withLock({ $0.probes.removeAll() }) {
            for packet in packets {
                guard let hasReturned = packet.hasReturned else {
                    sink?.follow(packet.probe, about: token, over: self)
                    continue
                }
                let target = state.withLock { $0.requests.awaitedTarget(token) }
                let request = RequestToken(connection: peer.connection, token: token)
                target?.receiver.didAnswer(packet.probe, about: request, hasReturned: hasReturned)
            }
        }
    }
}

/// The packets of probes that have come over a connection and wait to be handled: of each request the newest. A plain
/// value.
struct ProbeBacklog: Sendable {
    struct Packet: Equatable, Sendable {
        let probe: WaitProbe
        /// Nil for a question.
        let hasReturned: Bool?
    }

    private var packets: [UInt64: [Packet]] = [:]

    /// - Returns: whether it is the only one.
    mutating func add(_ packet: Packet, about token: UInt64) -> Bool {
        let isFirst = packets.isEmpty
        packets[token, default: []].append(packet)
        if packets[token, default: []].count > Tuning.probesPerRequest { packets[token]?.removeFirst() }
        return isFirst
    }

    mutating func removeAll() -> [UInt64: [Packet]] {
        defer { packets = [:] }
        return packets
    }
}
