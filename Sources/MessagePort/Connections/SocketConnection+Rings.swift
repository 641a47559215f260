// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How both ends of a connection agree on rings: the right's end offers its memory once there is enough traffic, and the
// port's end answers with its own. From then on each end writes into a ring of its own memory: see `OutgoingPath`.

import PortSystem
import Synchronization

extension SocketConnection {
    /// Offers rings to the port's end, when it is time. The caller holds the send lock.
    func offerRingsIfDue() {
        if isPortsEnd { return }
        let (isDue, isOffered, awaitsMove, former) = sender.channel.path.withLock { path in
            let former = path.resetIfMoved()
            return (path.isOfferDue(), path.isOffered, path.awaitsMove, former)
        }
        withExtendedLifetime(former) {}  // released without the lock
        // A program that only sends reads nothing, and would never see the answer, or that the port has moved.
        if isOffered || awaitsMove { receiveUnlessReceiving() }
        if isOffered || !isDue { return }
        do throws(SystemError) {
            let (end, descriptors) = try RingEnd.make()
            // First: the answer may come before the send returns.
            sender.channel.path.withLock { $0.didOffer(end) }
            let header = PacketHeader(
                kind: .ring, descriptorCount: UInt16(descriptors.count), totalLength: UInt64(SharedRing.memorySize))
            let outcome = try sysSendPacket(descriptor.rawValue, head: header.words, body: [], descriptors: descriptors)
            if outcome != .sent { sender.channel.path.withLock { $0.withdrawOffer() } }
        } catch {
            // A shortage may pass: then rings must be earned anew.
            let mayRetry = error.isShortage || error.isInFlightLimit
            sender.channel.path.withLock { if mayRetry { $0.withdrawOffer() } else { $0.refuse() } }
        }
    }

    /// Handles an offer of rings, or the answer to one.
    ///
    /// - Returns: whether to continue.
    func acceptRings(
        _ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?, _ path: inout IncomingPath
    ) -> Bool {
        let isIntact = payload.isEmpty && descriptors.map { $0.count == header.descriptorCount } ?? true
        let isAccepted =
            isIntact
            && (header.kind == .ring
                ? acceptOffer(header, descriptors, &path) : acceptAnswer(header, descriptors, &path))
        return isAccepted || refuse(.malformedPacket)
    }

    /// Handles the right's end's offer of rings: its memory, and the other end of its wake channel.
    ///
    /// - Returns: false when the packet breaks the format.
    private func acceptOffer(_ header: PacketHeader, _ descriptors: [SharedDescriptor]?, _ path: inout IncomingPath)
        -> Bool
    {
        guard isPortsEnd, !path.wasOffered, 1...2 ~= header.descriptorCount else { return false }
        path.didOffer()
        // First: a client that gets the answer and then learns of a move forgets the rings, and offers others.
        announceMoveIfDue()
        var answer = OutgoingPacket(header: PacketHeader(kind: .ringAnswer))
        if header.totalLength == UInt64(SharedRing.memorySize), RingPolicy.standard != .never,
            let memory = descriptors.flatMap(Self.mapMemory), let sockets = sink?.sockets,
            let (end, own) = sockets.withRings(for: self, { try? RingEnd.make() })
        {
            openRings(end, memory, channel: descriptors?.dropFirst().first, &path)
            answer.descriptors = own
            answer.header.descriptorCount = UInt16(own.count)
        } else {
            answer.header.messageID = Int32(PortError.Code.systemCallFailed.rawValue)
        }
        enqueue(answer)
        return true
    }

    /// Maps the peer's memory, the first of the descriptors.
    private static func mapMemory(_ descriptors: [SharedDescriptor]) -> SharedMemory? {
        guard let file = descriptors.first else { return nil }
        return (try? SharedMemory.map(file, size: SharedRing.memorySize)) ?? nil
    }

    /// Handles the port's end's answer, with its memory and its channel if it accepts rings. Where its memory is lost,
    /// everything stays on the socket: the port's end uses no ring before this end does.
    ///
    /// - Returns: false when the packet breaks the format.
    private func acceptAnswer(_ header: PacketHeader, _ descriptors: [SharedDescriptor]?, _ path: inout IncomingPath)
        -> Bool
    {
        guard !isPortsEnd, (header.messageID == 0 ? 1...2 : 0...0) ~= header.descriptorCount,
            let end = sender.channel.path.withLock({ $0.endOffer() })
        else { return false }
        if let memory = descriptors.flatMap(Self.mapMemory) {
            openRings(end, memory, channel: descriptors?.dropFirst().first, &path)
        }
        return true
    }

    /// The rings were wound up because the port has moved, or was to move: new ones can be earned. The caller holds the lock
    /// of the receiver.
    func loseRings(_ path: inout IncomingPath) {
        path.portDidMove()
        receiver.polledPeriod.store(0, ordering: .sequentiallyConsistent)
        receiver.ring.remove()?.close()
        receiver.ringEnd.withLock { $0.take() }?.wakeChannel.end()
        sender.channel.path.withLock { $0.portDidMove() }
    }

    /// Opens the rings, when both ends have the other's memory.
    private func openRings(
        _ end: RingEnd, _ peersMemory: SharedMemory, channel: SharedDescriptor?, _ path: inout IncomingPath
    ) {
        receiver.ringEnd.withLock { $0 = end }
        let incoming = SharedRing(from: peersMemory, to: end.memory)
        path.consumer = RingConsumer(incoming, limit: PacketHeader.packetLimit)
        receiver.ring.set(incoming)
        // The end of the connection, or of its port, is recorded first and then closes the ring: one of the two sees
        // the other.
        if hasEndedReading { incoming.close() }
        if isClosed { end.wakeChannel.end() }
        let outgoing = SharedRing(from: end.memory, to: peersMemory)
        let waker = channel.flatMap { WakeSender($0) }
        sender.channel.path.withLock { $0.open(outgoing, waker: waker, isPortsEnd: isPortsEnd) }
    }
}
