// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

// Queries of a peer about a port that are not for its handler, such as its statistics. They take no slot in the
// queue. A peer that only asks does not count as a sender of the port, so that observing a service neither keeps it
// alive nor ends it.
extension SocketConnection {
    /// Whether the peer has sent queries and no message.
    var isOnlyObserving: Bool { state.withLock { $0.use == .observing } }

    /// Whether the peer has sent messages.
    var hasSentMessages: Bool { state.withLock { $0.use == .messages } }

    /// Whether the peer has sent a query first; mostly answered without the lock.
    var isObserving: Bool { hasObserved.load(ordering: .relaxed) && isOnlyObserving }

    /// Reads from the peer again, which has read its answers: a query may be next.
    func resumeReading() {
        updateInterest()
        if isObserving { sink?.sockets?.background.object?.awaitQuery(of: self) }
    }

    /// Answers a query for statistics. Never waits: an answer that finds no room is sent before the next reply, and
    /// nothing more is read from the peer meanwhile.
    func answerStatisticsQuery(_ token: UInt64, about port: any MessageSink) {
        noteObserver(port)
        let header = PacketHeader(kind: .statistics, answers: token)
        enqueue(OutgoingPacket(header: header, payload: port.statistics.payload[...]))
    }

    /// The peer observes the port; unless it has sent messages, it no longer counts as a sender.
    func noteObserver(_ port: any MessageSink) {
        let wasCounted = state.withLock { state in
            defer { if state.use == .nothing { state.use = .observing } }
            hasObserved.store(true, ordering: .relaxed)
            return state.use == .nothing
        }
        if wasCounted { port.clientDidNotConnect() }
    }

    func beginTap(of port: any MessageSink, byteLimit: Int) {
        noteObserver(port)
        // A policy may admit other users; it does not allow them a tap.
        answerTap(sysIsOwnUser(peer.userID) && port.addTap(self, byteLimit: byteLimit))
    }

    /// Notifies the peer whether it may tap the port. Never waits.
    func answerTap(_ isAllowed: Bool) {
        let header = PacketHeader(kind: .tap, componentCount: isAllowed ? 1 : 2)
        enqueue(OutgoingPacket(header: header))
    }

    /// Sends a packet if there is room now and nothing waits to be sent; otherwise drops it.
    func offerAside(_ packet: OutgoingPacket) { sender.offerAside(packet, over: self) }
}
