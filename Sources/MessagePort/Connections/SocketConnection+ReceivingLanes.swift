// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The receiving side of a connection with rings: see SocketConnection+Lanes.swift.

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection {
    /// So many steps between two packets at most: a peer that plays with its counters keeps nobody for long.
    private static let stepLimit = 16

    /// Receives one packet, from the ring or the socket, in the order in which they were sent.
    ///
    /// - Returns: whether to go on.
    func receiveFromLanes(_ arrival: inout ReceiveState, _ core: (any MessageSink)?, depth: PollDepth) -> Bool {
        for _ in 0..<Self.stepLimit {
            if arrival.lane.isOnRing {
                let (outcome, landed) = nextRecord(&arrival)
                switch consume outcome {
                case .packet(let words, var payload):
                    arrival.lane.didTakeFromRing()
                    guard let header = PacketHeader(words) else { return refuse(.malformedPacket) }
                    if landed > 0 {
                        if header.kind == .continuation {
                            let event = arrival.assembly.didLand(landed, header, descriptors: [])
                            return handle(event, mustAsk: true, &arrival, core)
                        }
                        payload = arrival.assembly.takeBack(landed)
                    }
                    return take(header, payload, [], &arrival, core)
                case .mark(let count):
                    arrival.lane.leaveRing(before: count)
                    keptLook.store(0, ordering: .sequentiallyConsistent)
                case .broken: return refuse(.malformedPacket)
                case .empty, nil: break
                }
            }
            if arrival.lane.isOnRing, !arrival.lane.headIsSpent, arrival.lane.isWatched || arrival.lane.wasWatched {
                if arrival.lane.mustReadOn() { continue }
                // Nobody else sees to the socket while a loop looks by itself.
                if depth < (arrival.lane.isWatched ? .reported : .thorough) { return false }
            }
            let goesOn =
                arrival.lane.headIsSpent
                ? dropBell(&arrival.lane, depth) : lookAtSocket(&arrival, core)
            if let goesOn { return goesOn }
        }
        return true
    }

    /// Takes the next record out of the ring; the next piece of a large message goes to where it will lie.
    ///
    /// - Returns: what it is; and how many bytes of it were written behind the message that was begun.
    private func nextRecord(_ arrival: inout ReceiveState) -> (RingConsumer.Outcome?, landed: Int) {
        guard arrival.assembly.hasRoomForPiece, var reader = arrival.lane.reader else {
            return (arrival.lane.reader?.read(), 0)
        }
        var outcome = RingConsumer.Outcome.empty
        let landed = try? arrival.assembly.land { outcome = reader.read(into: &$0) }
        arrival.lane.reader = reader
        return (outcome, landed ?? 0)
    }

    /// The ring is empty, or the socket is next: takes the bell out of the socket, unless something came meanwhile.
    ///
    /// - Returns: whether to go on receiving; nil to look at the ring again.
    private func dropBell(_ lane: inout IncomingPath, _ depth: PollDepth) -> Bool? {
        // A loop that looks by itself needs no bell for what comes.
        if lane.isOnRing, !lane.isWatched, let reader = lane.reader {
            reader.sleep()
            if reader.hasMore {
                reader.wake()  // the bell is still there
                return nil
            }
            lane.wasWatched = false
        }
        do throws(SystemError) {
            let (outcome, head, _) = try sysReceiveHeadedPacket(descriptor.rawValue, limit: PacketHeader.size)
            switch outcome {
            case .packet(_, let descriptors):
                // Descriptors that came with it go as all that come from a peer.
                guard descriptors.isEmpty, head.flatMap(PacketHeader.init)?.isBell == true else {
                    return refuse(.malformedPacket)
                }
            case .descriptorsLost, .truncated: return refuse(.malformedPacket)
            // Told once, when the peer has gone with something unread; the bell is still there.
            case .reset: return true
            case .wouldBlock: return false  // it is there all the same, and taken later
            case .peerClosed: break  // the next look tells
            }
            lane.headIsSpent = false
            return depth == .thorough || !lane.isOnRing
        } catch {
            return failToLook(error)
        }
    }

    /// - Returns: that there is no more now.
    private func failToLook(_ error: SystemError) -> Bool {
        // Without memory for a packet the kernel keeps it: it is read later.
        if !error.isMemoryShortage { close(PortError(error)) }
        return false
    }

    /// The ring is empty, or the socket is next: looks at the first packet of the socket. Where it cannot lead to the ring it is
    /// taken at once.
    ///
    /// - Returns: whether to go on receiving; nil to look at the ring again.
    private func lookAtSocket(_ arrival: inout ReceiveState, _ core: (any MessageSink)?) -> Bool? {
        if arrival.lane.promisedCount > 0 { return receiveFromSocket(&arrival, core) }
        let seen: PeekOutcome
        do throws(SystemError) {
            seen = try sysPeekPacket(descriptor.rawValue)
        } catch {
            return failToLook(error)
        }
        switch seen {
        case .wouldBlock: return false
        case .reset: return true
        case .peerClosed:
            // What it has published is still read; nothing is added any more.
            if arrival.lane.isOnRing, let reader = arrival.lane.reader {
                reader.ring.close()
                if reader.hasMore { return nil }
            }
            return peerDidEnd()
        case .packet(let first):
            return see(PacketHeader.kind(ofPacketWith: first), &arrival, core)
        }
    }

    /// Takes a bell from the socket that was rung before the ring was left.
    func takeOldBell(_ header: PacketHeader, _ payload: [UInt8], _ descriptors: [SharedDescriptor]?) -> Bool {
        header.isBell && payload.isEmpty && descriptors?.isEmpty == true ? true : refuse(.malformedPacket)
    }

    /// The first packet of the socket is of a kind, or not of the format.
    private func see(_ kind: PacketKind?, _ arrival: inout ReceiveState, _ core: (any MessageSink)?) -> Bool? {
        switch kind {
        case .bell:
            arrival.lane.headIsSpent = true
            return nil
        case .lane:
            if arrival.lane.isOnRing { return refuse(.malformedPacket) }
            sender.channel.path.withLock { $0.peerDidOpen() }
            arrival.lane.isOnRing = true
            arrival.lane.headIsSpent = true
            return nil
        case .refused: return receiveFromSocket(&arrival, core)
        default:
            if !arrival.lane.isOnRing { return receiveFromSocket(&arrival, core) }
            // It stands behind a mark, which was in the ring before it was in the socket.
            return arrival.lane.reader?.hasMore == true ? nil : refuse(.malformedPacket)
        }
    }
}
