// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A stream of plain messages through a ring is received in bursts: the heads of all that lie there are looked at first; then
// they are charged for together, places in the queue are reserved, and they go there together. Whatever else the ring
// holds is taken packet by packet.

import PortSystem
import Synchronization

extension SocketConnection {
    /// A burst ends when it has so many bytes in the ring.
    private static let burstSize = 64 << 10

    /// Takes the plain messages that come next in the ring into the port's queue, as far as there is room for them.
    ///
    /// - Parameters:
    ///   - arrival: what is kept from one packet to the next.
    ///   - core: the port.
    ///   - limit: the most messages.
    /// - Returns: how many there were: none when there is no room, or no more may be read from the process; nil when the next
    ///   packet is another, or lies elsewhere.
    func receiveBurst(_ arrival: inout ReceiveState, _ core: any MessageSink, limit: Int) -> Int? {
        guard port != nil, core.takesBursts, arrival.lane.isOnRing, !arrival.assembly.isBegun, !isClosed,
            let ledger = ledger(of: core)
        else { return nil }
        let most = min(limit, arrival.burst.most)
        arrival.lane.reader?.seePlain(&arrival.burst.packets, atMost: most, size: Self.burstSize)
        if arrival.burst.packets.isEmpty { return nil }
        var isOver = false
        var cost = ledger.charge(owner, forFirstOf: arrival.burst.packets, &isOver)
        if cost.messages == 0 { return 0 }
        let places = core.reserveRoom(atMost: cost.messages)
        arrival.burst.didReserve(places, of: cost.messages)
        if places < cost.messages {
            var rest = ResourceUsage()
            for packet in arrival.burst.packets[places..<cost.messages] { rest += packet.cost }
            ledger.giveBack(rest, by: owner)
            cost -= rest
        }
        if places == 0 { return 0 }
        arrival.lane.didTakeFromRing()
        noteSender(of: core, &arrival)
        let byteCount = take(&arrival, PeerCharge(ledger, owner, cost), count: places)
        let hasRoom = core.fillReserved(by: &arrival.burst.messages, byteCount: byteCount)
        if !arrival.burst.messages.isEmpty { arrival.burst.messages = MessageBuffer() }  // the port is dead
        arrival.mayReadOn = hasRoom && !isOver
        return places
    }

    /// Takes the first of the packets that were seen out of the ring.
    ///
    /// - Returns: how many bytes their messages have.
    private func take(_ arrival: inout ReceiveState, _ charge: consuming PeerCharge, count: Int) -> Int {
        let envelope = MessageEnvelope(ofBurst: count, from: peer, charge)
        var byteCount = 0
        for index in 0..<count {
            let packet = arrival.burst.packets[index]
            let bytes = arrival.lane.reader?.takeBody(behind: packet) ?? []
            arrival.burst.messages.append(MachMessage(ofBurst: envelope, id: packet.messageID, bytes: bytes))
            byteCount += packet.byteCount
        }
        return byteCount
    }

    /// The peer sends messages to the port: it is one of its senders.
    private func noteSender(of core: any MessageSink, _ arrival: inout ReceiveState) {
        if arrival.hasNotedSender { return }
        arrival.hasNotedSender = true
        let lookedOn = state.withLock { $0.noteMessages() }
        if lookedOn { core.clientMayCome() }
    }
}
