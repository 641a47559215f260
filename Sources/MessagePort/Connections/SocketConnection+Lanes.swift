// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A connection with rings. What goes through a ring are the packets that would go through the socket; the socket says when
// there are some, and carries what the ring cannot.
//
// What keeps messages from lying unseen: as long as something is in a ring, its reader's socket is readable, or a bell is
// on its way there. The reader takes a bell out of the socket only after it has said that it sleeps, and has found the ring
// empty then; what comes later rings anew. A bell that comes while the socket is next was rung for what has been read. So
// whoever waits for the socket, in whatever way, needs to know nothing of rings. Docs/Decisions/0011-shared-ring.md has the
// proof.

import PortCLibrary
import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection {
    /// Says when rings are offered from now on.
    func useRings(_ use: RingUse) { sender.channel.path.withLock { $0.use = use } }

    /// Whether rings were offered and neither taken nor refused.
    var awaitsRingAnswer: Bool { sender.channel.path.withLock { $0.isOffered } }

    /// Offers rings to the port's end, when it is time. The caller has the turn.
    func offerRings() {
        guard port == nil else { return }
        switch sender.channel.path.withLock({ $0.nextOffer() }) {
        case .none: return
        // Who only sends reads nothing, and would never learn of the answer.
        case .pending: return receiveUnlessReceiving()
        case .due: break
        }
        do throws(SystemError) {
            let (end, descriptors) = try RingEnd.make()
            // First: the answer may be there before this goes on.
            sender.channel.path.withLock { $0.didOffer(end) }
            let header = PacketHeader(
                kind: .ring, descriptorCount: UInt16(descriptors.count), totalLength: UInt64(SharedRing.memorySize))
            let outcome = try sysSendPacket(
                descriptor.rawValue, head: header.words, body: [], descriptors: descriptors)
            if outcome != .sent { sender.channel.path.withLock { $0.withdrawOffer() } }
        } catch {
            // What there is too little of now may be there later: then they have to be earned anew.
            let mayBeLater = error.isShortage || error.isInFlightLimit
            sender.channel.path.withLock { if mayBeLater { $0.withdrawOffer() } else { $0.refuse() } }
        }
    }

    /// The right's end offers rings: its memory, and the other end of its wake channel.
    func takeOffer(
        _ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?, _ lane: inout IncomingPath
    ) -> Bool {
        guard port != nil, !lane.wasOffered, payload.isEmpty, 1...2 ~= header.descriptorCount,
            descriptors.map({ $0.count == header.descriptorCount }) ?? true
        else { return refuse(.malformedPacket) }
        lane.wasOffered = true
        var answer = OutgoingPacket(header: PacketHeader(kind: .ringAnswer))
        if header.totalLength == UInt64(SharedRing.memorySize), RingUse.standard != .never,
            let memory = descriptors.flatMap(mapMemory), let sockets = port?.object?.sockets,
            let (end, own) = sockets.withRings(for: self, { try? RingEnd.make() })
        {
            open(end, memory, channel: descriptors?.dropFirst().first, &lane)
            answer.descriptors = own
            answer.header.descriptorCount = UInt16(own.count)
        } else {
            answer.header.messageID = Int32(PortError.Code.systemCallFailed.rawValue)
        }
        enqueue([BacklogPacket(packet: answer)])
        return true
    }

    /// Maps the memory that the peer has made, the first of the descriptors.
    private func mapMemory(_ descriptors: [SharedDescriptor]) -> SharedMemory? {
        guard let file = descriptors.first else { return nil }
        return (try? SharedMemory.map(file, size: SharedRing.memorySize)) ?? nil
    }

    /// The port's end has answered, with its memory and its channel if it takes rings. Where its memory is lost, everything stays on the
    /// socket: the port's end uses no ring before this end does.
    func takeAnswer(
        _ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?, _ lane: inout IncomingPath
    ) -> Bool {
        guard port == nil, payload.isEmpty, (header.messageID == 0 ? 1...2 : 0...0) ~= header.descriptorCount,
            descriptors.map({ $0.count == header.descriptorCount }) ?? true,
            let end = sender.channel.path.withLock({ $0.takeOffered() })
        else { return refuse(.malformedPacket) }
        if let memory = descriptors.flatMap(mapMemory) {
            open(end, memory, channel: descriptors?.dropFirst().first, &lane)
        }
        return true
    }

    /// Both ends have the other's memory.
    private func open(
        _ end: RingEnd, _ peersMemory: SharedMemory, channel: SharedDescriptor?, _ lane: inout IncomingPath
    ) {
        ringEnd.set(end)
        let incoming = SharedRing(from: peersMemory, to: end.memory)
        lane.reader = RingConsumer(incoming, limit: PacketHeader.packetLimit)
        incomingRing.set(incoming)
        // Who ends the connection, or its port, says so first and closes the ring then: one of the two sees the other.
        if state.withLock({ $0.life.failure != nil || port != nil && $0.life.hasLostOwner }) { incoming.close() }
        if isClosed { end.wakeChannel.end() }
        let outgoing = SharedRing(from: end.memory, to: peersMemory)
        let waker = channel.flatMap { WakeSender($0) }
        sender.channel.path.withLock { $0.open(outgoing, waker: waker, isPortsEnd: port != nil) }
    }
}
