// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Questions that a peer has about a port, and not for its handler: how it is. They take no place in the queue. Whoever does
// nothing but ask is no sender of the port, so that looking at a service does not keep it, or end it.

import PortSystem
import Synchronization

extension SocketConnection {
    /// Whether the peer has asked questions and sent no message.
    var looksOn: Bool { state.withLock { $0.use == .looking } }

    /// Answers a question. Never waits: an answer that finds no room is sent before the next reply, and nothing more is read
    /// from the peer meanwhile.
    func answerQuestion(_ token: UInt64, about port: any MessageSink) {
        noteLookingOn(port)
        let header = PacketHeader(kind: .statistics, answers: token)
        let packet = OutgoingPacket(header: header, payload: port.statistics.payload[...])
        enqueue([BacklogPacket(packet: packet)])
    }

    /// The peer looks at the port; unless it has sent messages, it is none of the port's senders any more.
    func noteLookingOn(_ port: any MessageSink) {
        let wasCounted = state.withLock { state in
            defer { if state.use == .nothing { state.use = .looking } }
            return state.use == .nothing
        }
        if wasCounted { port.clientDidNotCome() }
    }
}

extension SocketConnection {
    /// The peer wants to watch the port.
    func beginWatch(of port: any MessageSink, byteLimit: Int) {
        noteLookingOn(port)
        // A policy may admit other users; their eyes are not meant by it.
        answerWatch(sysIsOwnUser(peer.userID) && port.addWatcher(self, byteLimit: byteLimit))
    }

    /// Says whether the peer is shown messages. Never waits.
    func answerWatch(_ isAllowed: Bool) {
        let header = PacketHeader(kind: .watch, componentCount: isAllowed ? 1 : 2)
        enqueue([BacklogPacket(packet: OutgoingPacket(header: header))])
    }

    /// Sends a packet if there is room now and nothing else is on its way; otherwise it is left out.
    func offerAside(_ packet: OutgoingPacket) { sender.offerAside(packet, over: self) }
}
