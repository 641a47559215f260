// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// The port's end of a ring whose port moves to another process. A ring belongs to two processes, whose memory it is: it
// is wound up. The consumer closes it, which fixes where it ends, and reads what is there. The producer finds it closed,
// and sends the next packet over the socket; so its order stays.
extension IncomingChannel {
    /// Closes the ring, and reads what is in it, and what is on the socket before that, to be handled later.
    ///
    /// - Returns: false when the peer breaks the format.
    mutating func windUp(from socket: SharedDescriptor, for observer: some IncomingChannelObserver) -> Bool {
        guard var consumer = path.consumer else { return true }
        consumer.ring.close()
        while true {
            if path.isOnRing {
                switch consumer.read() {
                case .packet(let words, let payload):
                    guard let header = PacketHeader(words) else { return false }
                    unread.append(PendingPacket(header: header, payload: payload, descriptors: []))
                    continue
                case .mark(let count):
                    path.leaveRing(before: count)
                    continue
                case .broken: return false
                case .empty: break
                }
            } else if consumer.hasMore {
                // After a mark: the packets on the socket come first, up to the path change.
                guard readOnePacket(from: socket, for: observer) else { return false }
                continue
            }
            path.windUp()
            return true
        }
    }

    /// - Returns: false when there is none, or it breaks the format.
    private mutating func readOnePacket(
        from socket: SharedDescriptor, for observer: some IncomingChannelObserver
    ) -> Bool {
        let received = try? sysReceiveHeadedPacket(
            socket.rawValue, limit: PacketHeader.packetLimit, from: observer.closeObserver())
        guard let (outcome, head, payload) = received, let header = head.flatMap({ PacketHeader($0) }) else {
            return false
        }
        switch outcome {
        case .packet(_, let descriptors):
            if header.kind == .pathChange {
                path.enterLastTime()
            } else if header.kind != .wakeUp {
                let count = Int(header.descriptorCount)
                let isAdmitted = descriptors.isEmpty || DescriptorShares().admits(descriptors, of: count)
                if header.ownDescriptorCount != descriptors.count { return false }
                unread.append(
                    PendingPacket(header: header, payload: payload, descriptors: isAdmitted ? descriptors : nil))
            }
            return true
        case .descriptorsLost:
            unread.append(PendingPacket(header: header, payload: payload, descriptors: nil))
            return true
        case .truncated, .wouldBlock, .peerClosed: return false
        }
    }
}
