// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Questions that a peer has about a port, and not for its handler: how it is. They take no place in the queue. Whoever does
// nothing but ask is no sender of the port, so that looking at a service does not keep it, or end it.

import Synchronization

extension SocketConnection {
    /// Whether the peer has asked questions and sent no message.
    var looksOn: Bool { state.withLock { $0.use == .looking } }

    /// Answers a question. Never waits: an answer that finds no room is sent before the next reply, and nothing more is read
    /// from the peer meanwhile.
    func answerQuestion(_ token: UInt64, about core: PortCore) {
        noteLookingOn(core)
        let header = PacketHeader(kind: .statistics, answers: token)
        let packet = OutgoingPacket(header: header, payload: core.statistics.payload[...])
        owe([OverduePacket(packet: packet)])
    }

    /// The peer looks at the port; unless it has sent messages, it is none of the port's senders any more.
    func noteLookingOn(_ core: PortCore) {
        let wasCounted = state.withLock { state in
            defer { if state.use == .nothing { state.use = .looking } }
            return state.use == .nothing
        }
        if wasCounted { core.clientDidNotCome() }
    }
}
