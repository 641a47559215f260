// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization

// The packets of probes, which follow the waits of threads from process to process: see `WaitProbes`. They are handled
// on the I/O thread: the threads of a port that cannot be answered all wait.
extension SocketConnection {
    /// Asks the process at the other end whether a thread may answer the request that asked with the token, or will, when
    /// it is sent. Never waits.
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

    /// Whether only the receiver of the peer's request can answer it: the one under the token, or the one that will come
    /// under it. After a reply to it the peer does not use the answer to a probe: the reply comes first.
    func mayBeOwed(_ token: UInt64) -> Bool {
        state.withLock { $0.requests.mayBeBound(token) && $0.coldState.pendingReplies[token] == nil }
    }

    /// Whether the peer's request is here.
    func hasRequest(_ token: UInt64) -> Bool { state.withLock { $0.requests.isUnanswered(token) } }

    /// Has a thread wait for room for the message that will ask under the token, or for another message, with zero.
    func waitForRoom(
        until deadline: MonotonicInstant, toAsk token: UInt64, waking wake: @escaping @Sendable () -> Void,
        _ wait: (MonotonicInstant) throws(PortError) -> Bool
    ) throws(PortError) {
        let target = token == 0 ? nil : state.withLock { $0.requests.awaitedTarget(token) }
        // What is answered when it is queued needs no thread that serves the port.
        guard let target, target.confirmation != .queued else { return _ = try wait(deadline) }
        try target.receiver.waitForRoom(until: deadline, toAsk: token, waking: wake, wait)
    }

    /// The peer asks about a request of its own.
    func didReceive(_ probe: WaitProbe, about token: UInt64) {
        handleLater(ProbeBacklog.Packet(token: token, probe: probe, hasReturned: nil))
    }

    /// The peer has answered about a request of this end's.
    func didReceiveAnswer(_ probe: WaitProbe, about token: UInt64, hasReturned: Bool) {
        handleLater(ProbeBacklog.Packet(token: token, probe: probe, hasReturned: hasReturned))
    }

    /// Handles a packet with no lock held, if it is about a request that has not ended.
    private func handleLater(_ packet: ProbeBacklog.Packet) {
        guard let loop = try? IOThread.loop() else { return }
        let isFirst = state.withLock { state in
            let (token, requests) = (packet.token, state.requests)
            let isOpen = packet.hasReturned == nil ? requests.mayBeBound(token) : requests.isAwaited(token)
            let isHere = packet.hasReturned != nil || requests.isUnanswered(token)
            return isOpen && state.coldState.probes.add(packet, isHere: isHere)
        }
        if isFirst { loop.perform { if !self.isInherited { self.handleProbes() } } }
    }

    private func handleProbes() {
        for packet in state.withLock({ $0.coldState.probes.removeAll() }) {
            guard let hasReturned = packet.hasReturned else {
                sink?.follow(packet.probe, about: packet.token, over: self)
                continue
            }
            let target = state.withLock { $0.requests.awaitedTarget(packet.token) }
            let request = RequestToken(connection: peer.connection, token: packet.token)
            target?.receiver.didAnswer(packet.probe, about: request, hasReturned: hasReturned)
        }
    }
}

/// The packets of probes that have come over a connection and wait to be handled: of each request the newest, and of all
/// those together that have not come. A plain value.
struct ProbeBacklog: Sendable {
    struct Packet: Equatable, Sendable {
        /// The request's.
        let token: UInt64
        let probe: WaitProbe
        /// Nil for a question.
        let hasReturned: Bool?
    }

    private var packets: [UInt64: [Packet]] = [:]

    /// - Returns: whether it is the only one.
    mutating func add(_ packet: Packet, isHere: Bool) -> Bool {
        let (isFirst, key) = (packets.isEmpty, isHere ? packet.token : RequestToken.notHere)
        packets[key, default: []].append(packet)
        if packets[key, default: []].count > Tuning.probesPerRequest { packets[key]?.removeFirst() }
        return isFirst
    }

    mutating func removeAll() -> [Packet] {
        defer { packets = [:] }
        return packets.values.flatMap(\.self)
    }
}
