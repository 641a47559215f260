// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

// The receiving side of a connection: reads the next packet, from the socket or the ring, in the order in which they
// were sent.
//
// No packet waits unnoticed: as long as the ring has data, its consumer's socket is readable, or a wake-up is on its
// way there. The consumer removes a wake-up from the socket only after it has marked itself asleep and then found the
// ring empty; what comes later brings another wake-up. A wake-up that comes while the path is the socket was sent for
// data that has been read. So whatever waits for the socket, by whatever means, needs to know nothing of rings.
// Docs/MemoryOrder.md has the proof.

/// How thoroughly to poll for a packet.
enum PollDepth: Comparable, Sendable {
    /// What is on the socket beside a ring may wait: it is reported again.
    case quick
    /// The kernel has reported data on the socket.
    case reported
    /// Also packets behind a wake-up.
    case thorough
}

/// The result of a read of the channel.
enum ReceiveResult: Sendable {
    /// A packet. Its descriptors are nil when they were lost.
    case packet(PacketHeader, [UInt8], [SharedDescriptor]?)
    /// The next piece of a partial message, whose bytes were read in place.
    case piece(PacketHeader, Int, [SharedDescriptor]?)
    /// An offer of rings, or the answer to one.
    case rings(PacketHeader, [UInt8], [SharedDescriptor]?)
    /// Nothing now.
    case nothing
    /// No packet, but there may be one.
    case again
    /// The peer is gone, and all that it sent was read.
    case ended
    /// Data that breaks the format.
    case malformed
    case failed(SystemError)
}

/// The events of a channel that its connection handles before the next packet is read.
protocol IncomingChannelObserver {
    /// The peer's next packets are in the ring.
    func peerDidOpenRing()
    /// The peer's next packets are on the socket.
    func peerDidLeaveRing()
    /// What observes the closing of a packet's descriptors.
    func closeObserver() -> any CloseObserver
}

/// A packet that was read, and is handled later.
struct PendingPacket: Sendable {
    let header: PacketHeader
    let payload: [UInt8]
    /// Nil when they were lost.
    let descriptors: [SharedDescriptor]?
}

/// Which process has sent a packet, as the kernel says it.
struct PacketOrigin: Sendable {
    let process: Int32
    let user: UInt32
    let group: UInt32
}

struct IncomingChannel: ~Copyable, Sendable {
    var assembly = PacketAssembly()
    var path = IncomingPath()
    /// What comes before the next packet: the rest of a ring that was wound up.
    var unread = Deque<PendingPacket>()
    /// Whether the port at the other end has moved, and the next packet of its new owner says which process that is.
    var awaitsOwner = false
    /// Which process has sent the packet that was read last, while that is awaited; nil when the kernel does not say it.
    private(set) var lastSender: PacketOrigin?
    /// Whether there may be a packet of which the kernel reports nothing.
    var hasUnsignalledData: Bool { path.isUnsettled || !unread.isEmpty }
    /// All has been read that need be read now: a loop polls the ring, which is empty.
    var isReadForNow: Bool { path.isReadForNow && unread.isEmpty }

    /// The next packet, if it is a plain one in the ring, where it stays.
    mutating func peekPlain() -> PacketPrefix? {
        path.isOnRing && unread.isEmpty && !assembly.isBegun ? path.consumer?.peekPlain() : nil
    }

    /// Reads the packet that `peekPlain` has found.
    ///
    /// - Returns: the bytes of its message.
    mutating func readPlain(_ packet: PacketPrefix) -> [UInt8] {
        path.didReadRing()
        return path.consumer?.consumeBody(after: packet) ?? []
    }

    mutating func next(
        from socket: SharedDescriptor, depth: PollDepth, for observer: some IncomingChannelObserver
    ) -> ReceiveResult {
        if let packet = unread.popFirst() { return .packet(packet.header, packet.payload, packet.descriptors) }
        return path.hasRing
            ? nextOfBoth(socket, depth: depth, for: observer) : nextOfSocket(socket, for: observer)
    }

    /// Reads a packet from the ring or the socket. A peer that manipulates its counters delays the consumer by at most
    /// the step limit.
    private mutating func nextOfBoth(
        _ socket: SharedDescriptor, depth: PollDepth, for observer: some IncomingChannelObserver
    ) -> ReceiveResult {
        for _ in 0..<Tuning.stepLimit {
            if path.isOnRing {
                let (outcome, landed) = nextRecord()
                switch consume outcome {
                case .packet(let words, var payload):
                    path.didReadRing()
                    guard let header = PacketHeader(words) else { return .malformed }
                    if landed > 0 {
                        if header.kind == .continuation { return .piece(header, landed, []) }
                        payload = assembly.removeWritten(landed)
                    }
                    return .packet(header, payload, [])
                case .mark(let count):
                    path.leaveRing(before: count)
                    observer.peerDidLeaveRing()
                case .broken: return .malformed
                case .empty, nil: break
                }
            }
            if path.isPolled || path.isUnsettled, !path.hasSpentWakeUp {
                if path.mustReadOn() { continue }
                // Only the loop that polls reads the socket.
                if depth < (path.isPolled ? .reported : .thorough) { return .nothing }
            }
            let received =
                path.hasSpentWakeUp
                ? removeWakeUp(socket, depth) : nextBesideRing(socket, for: observer)
            if let received { return received }
        }
        return .again
    }

    /// Reads the next record of the ring; the next piece of a large message is read in place.
    ///
    /// - Returns: the record; and how many of its bytes were appended to the partial message.
    private mutating func nextRecord() -> (RingConsumer.Outcome?, landed: Int) {
        guard assembly.hasRoomForPiece, var consumer = path.consumer else { return (path.consumer?.read(), 0) }
        var outcome = RingConsumer.Outcome.empty
        let landed = try? assembly.land { outcome = consumer.read(into: &$0) }
        path.consumer = consumer
        return (outcome, landed ?? 0)
    }

    /// The ring is empty, or the path is the socket: removes the wake-up from the socket, unless data has come since.
    ///
    /// - Returns: the result of the read; nil to read the ring again.
    private mutating func removeWakeUp(_ socket: SharedDescriptor, _ depth: PollDepth) -> ReceiveResult? {
        // A loop that polls needs no wake-up for what comes.
        if path.isOnRing, !path.isPolled, path.mustReadOn() { return nil }  // the wake-up is still there
        do throws(SystemError) {
            let (outcome, head, _) = try sysReceiveHeadedPacket(socket.rawValue, limit: PacketHeader.size)
            switch outcome {
            case .packet(_, let descriptors):
                // Descriptors that came with it are closed as all that come from a peer.
                guard descriptors.isEmpty, head.flatMap(PacketHeader.init)?.isWakeUp == true else { return .malformed }
            case .descriptorsLost, .truncated: return .malformed
            case .wouldBlock: return .nothing  // it is still there, and removed later
            case .peerClosed: break  // the next read finds it
            }
            path.hasSpentWakeUp = false
            return depth == .thorough || !path.isOnRing ? .again : .nothing
        } catch {
            return .failed(error)
        }
    }

    /// The ring is empty, or the path is the socket: peeks at the first packet of the socket. A packet that cannot
    /// change the path is read at once.
    ///
    /// - Returns: the result of the read; nil to read the ring again.
    private mutating func nextBesideRing(
        _ socket: SharedDescriptor, for observer: some IncomingChannelObserver
    ) -> ReceiveResult? {
        if path.promisedCount > 0 { return nextOfSocket(socket, for: observer) }
        let peeked: PeekOutcome
        do throws(SystemError) {
            peeked = try sysPeekPacket(socket.rawValue)
        } catch {
            return .failed(error)
        }
        switch peeked {
        case .wouldBlock: return .nothing
        case .peerClosed:
            // What it has published is still read; nothing is added any more.
            if path.isOnRing, let consumer = path.consumer {
                consumer.ring.close()
                if consumer.hasMore { return nil }
            }
            return .ended
        case .packet(let first):
            switch PacketHeader.kind(ofPacketWith: first) {
            case .wakeUp:
                path.hasSpentWakeUp = true
                return nil
            case .pathChange:
                if path.isOnRing { return .malformed }
                observer.peerDidOpenRing()
                path.enterRing()
                return nil
            case .refused, .presence, .returnPage: return nextOfSocket(socket, for: observer)
            default:
                if !path.isOnRing { return nextOfSocket(socket, for: observer) }
                // It follows a mark, which was in the ring before the packet was on the socket.
                return path.consumer?.hasMore == true ? nil : .malformed
            }
        }
    }

    private mutating func nextOfSocket(
        _ socket: SharedDescriptor, for observer: some IncomingChannelObserver
    ) -> ReceiveResult {
        if awaitsOwner { lastSender = (try? sysPeekSender(socket.rawValue)).flatMap { $0.map(PacketOrigin.init) } }
        do throws(SystemError) {
            if assembly.hasRoomForPiece { return try nextPieceOfSocket(socket, for: observer) }
            let (outcome, head, payload) = try sysReceiveHeadedPacket(
                socket.rawValue, limit: PacketHeader.packetLimit, from: observer.closeObserver())
            return Self.received(outcome, head) { sort(head, payload, $0) }
        } catch {
            return .failed(error)
        }
    }

    /// Reads a packet from the socket that is likely to be the next piece of a large message.
    private mutating func nextPieceOfSocket(
        _ socket: SharedDescriptor, for observer: some IncomingChannelObserver
    ) throws(SystemError) -> ReceiveResult {
        var outcome = ReceiveOutcome.wouldBlock
        var head: PacketWords?
        let count = try assembly.land { (room) throws(SystemError) in
            (outcome, head) = try sysReceiveHeadedPacket(socket.rawValue, into: &room, from: observer.closeObserver())
        }
        return Self.received(outcome, head) { descriptors in
            if let header = head.flatMap(PacketHeader.init), header.kind == .continuation {
                path.didReadSocket()
                return .piece(header, count, descriptors)
            }
            return sort(head, assembly.removeWritten(count), descriptors)
        }
    }

    /// The result of a receive; `packet` makes it from the descriptors. They are nil when they were lost, or when this
    /// process has none to spare for them: their number is checked here, as far as it is known.
    private static func received(
        _ outcome: ReceiveOutcome, _ head: PacketWords?, _ packet: ([SharedDescriptor]?) -> ReceiveResult
    ) -> ReceiveResult {
        switch outcome {
        case .packet(_, let descriptors):
            guard !descriptors.isEmpty, let header = head.flatMap(PacketHeader.init) else { return packet(descriptors) }
            if header.ownDescriptorCount != descriptors.count { return .malformed }
            return packet(DescriptorShares().admits(descriptors, of: Int(header.descriptorCount)) ? descriptors : nil)
        case .descriptorsLost:
            return head.flatMap(PacketHeader.init)?.ownDescriptorCount == 0 ? .malformed : packet(nil)
        case .truncated: return .malformed
        case .wouldBlock: return .nothing
        case .peerClosed: return .ended
        }
    }

    private mutating func sort(
        _ head: PacketWords?, _ payload: consuming [UInt8], _ descriptors: [SharedDescriptor]?
    ) -> ReceiveResult {
        guard let head, let header = PacketHeader(head) else { return .malformed }
        switch header.kind {
        case .ring, .ringAnswer: return .rings(header, payload, descriptors)
        // A wake-up for a ring that was wound up meanwhile.
        case .wakeUp where path.isWoundUp, .pathChange where path.isWoundUp:
            return header.isWakeUp && payload.isEmpty && descriptors?.isEmpty == true ? .again : .malformed
        // A wake-up that was sent before the path changed.
        case .wakeUp where path.promisedCount > 0:
            return header.isWakeUp && payload.isEmpty && descriptors?.isEmpty == true ? .again : .malformed
        // It may come at any time, and counts for no mark.
        case .presence, .returnPage: return .packet(header, payload, descriptors)
        default:
            path.didReadSocket()
            return .packet(header, payload, descriptors)
        }
    }
}
