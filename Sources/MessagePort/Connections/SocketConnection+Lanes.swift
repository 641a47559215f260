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
    func useRings(_ use: RingUse) { sendingLane.withLock { $0.use = use } }

    /// Whether rings were offered and neither taken nor refused.
    var awaitsRingAnswer: Bool { sendingLane.withLock { $0.isOffered } }

    /// Offers rings to the port's end, when it is time. The caller has the turn.
    func offerRings() {
        guard port == nil else { return }
        switch sendingLane.withLock({ $0.nextOffer() }) {
        case .none: return
        // Who only sends reads nothing, and would never learn of the answer.
        case .pending: return receiveUnlessReceiving()
        case .due: break
        }
        do throws(SystemError) {
            let (end, descriptors) = try RingEnd.make()
            // First: the answer may be there before this goes on.
            sendingLane.withLock { $0.didOffer(end) }
            let header = PacketHeader(
                kind: .ring, descriptorCount: UInt16(descriptors.count), totalLength: UInt64(SharedRing.memorySize))
            let outcome = try sysSendPacket(
                descriptor.rawValue, head: header.words, body: [], descriptors: descriptors)
            if outcome != .sent { sendingLane.withLock { $0.withdrawOffer() } }
        } catch {
            // What there is too little of now may be there later: then they have to be earned anew.
            let mayBeLater = error.isShortage || error.isInFlightLimit
            sendingLane.withLock { if mayBeLater { $0.withdrawOffer() } else { $0.refuse() } }
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
        owe([BacklogPacket(packet: answer)])
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
            let end = sendingLane.withLock({ $0.takeOffered() })
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
        if state.withLock({ $0.failure != nil || $0.hasLostPort }) { incoming.close() }
        if isClosed { end.wakeChannel.end() }
        let outgoing = SharedRing(from: end.memory, to: peersMemory)
        let waker = channel.flatMap { WakeSender($0) }
        sendingLane.withLock { $0.open(outgoing, waker: waker, isPortsEnd: port != nil) }
    }
}

extension SocketConnection {
    /// Offers one packet to the peer, by the ring or the socket. The caller has the turn.
    ///
    /// - Returns: false when there is no room.
    func offer(_ packet: OutgoingPacket) throws(PortError) -> Bool {
        var patience: MonotonicInstant?
        while true {
            if isClosed { throw peerDidClose() }
            var step = sendingLane.withLock { $0.place(packet) }
            if case .full = step {
                let end = patience ?? .after(port == nil ? Self.senderPatience : Self.replierPatience)
                patience = end
                if waitForReader(until: end) { continue }
                step = sendingLane.withLock { $0.leaveRing() }
            }
            switch step {
            case .socket:
                guard try offerToSocket(packet) else { return false }
                return true
            case .promised:
                guard try offerToSocket(packet) else { return false }
                sendingLane.withLock { $0.didKeepPromise() }
                return true
            case .announce:
                guard try offerToSocket(OutgoingPacket(header: PacketHeader(kind: .lane))) else { return false }
                sendingLane.withLock { $0.didAnnounce() }
            case .written(let notice):
                try follow(notice)
                return true
            case .closed: throw peerDidClose()
            case .broken, .full:
                _ = refuse(.malformedPacket)
                throw PortError(.malformedPacket)
            }
        }
    }

    /// Does what is to be done when a packet is in the ring.
    func follow(_ notice: OutgoingPath.Notice) throws(PortError) {
        switch notice {
        case .none: break
        case .bell(let wasAwake):
            if wasAwake { letReaderWake() }
            try tellReader()
        case .wake: try tellReader()
        case .look: try lookForReader()
        case .closing: try awaitEndOfRing()
        }
    }

    /// A reader that closes the ring says within this time how far it reads.
    private static let closingPatience = Duration.milliseconds(100)

    /// The reader closes the ring, and a packet was written meanwhile: waits to learn whether it will be read. At the port's end, whose
    /// connection ends then, nobody waits.
    private func awaitEndOfRing() throws(PortError) {
        let deadline = port == nil ? MonotonicInstant.after(Self.closingPatience) : .distantPast
        while true {
            if let isRead = sendingLane.withLock({ $0.isLastRead }) {
                if isRead { return }
                throw peerDidClose()
            }
            let seen = (try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)) ?? []
            if .now > deadline || !seen.isDisjoint(with: .hangUpOrError) { throw peerDidClose() }
            sysYield()
        }
    }

    /// Tells a reader that sleeps that something is in the ring.
    private func tellReader() throws(PortError) {
        switch sendingLane.withLock({ $0.takeSleep() }) {
        case .none: break
        case .bell: try ringBell()
        case .wake(let waker):
            if !waker.wake() {
                sendingLane.withLock { $0.didFailToWake() }
                return try ringBell()
            }
            if sendingLane.withLock({ $0.isLookDue }) { try lookForReader() }
        }
    }

    /// So long a sender waits for room in the ring, for each packet. A reader that handles messages reads again when it
    /// has handled 32 of them. Who gives up sooner leaves the ring for packets that cost the reader several times as
    /// much.
    private static let senderPatience = Duration.microseconds(100)
    /// The same at the port's end. A reply waits for nobody: not for a reader that is slow, or that plays with its counter.
    private static let replierPatience = Duration.microseconds(20)

    /// So long a sender waits for room before it lets others have its processor: a reader that has one of its own, and handles
    /// messages, mostly reads again before.
    private static let timeBetweenYields = Duration.microseconds(20)

    /// The ring is full. Where the reader has a processor of its own, and reads, there is room in a moment, and less time is
    /// lost than by a system call.
    ///
    /// - Returns: whether there may be room.
    private func waitForReader(until end: MonotonicInstant) -> Bool {
        guard ProcessorAllowance.shared.allowsSpinning(at: .coarse) else { return false }
        var nextYield = MonotonicInstant.after(Self.timeBetweenYields)
        while true {
            // First: a reader that creeps holds nobody longer than one that stands still.
            let now = MonotonicInstant.now
            if now >= end { return false }
            if now >= nextYield {
                sysYield()  // the reader may wait for this very processor
                nextYield = .after(Self.timeBetweenYields)
            }
            for _ in 0..<32 { sysPause() }
            if sendingLane.withLock({ $0.hasReaderMoved() }) { return true }
        }
    }

    /// So long a sender looks whether a reader that was awake a moment ago is again, before it rings.
    private static let timeBeforeBell = Duration.microseconds(2)

    /// A reader is asleep, to its peer, while it handles what it has read. Two that answer each other mostly look again before
    /// a bell, three system calls, would have reached them.
    private func letReaderWake() {
        guard ProcessorAllowance.shared.allowsSpinning(at: .coarse) else { return }
        let end = MonotonicInstant.after(Self.timeBeforeBell)
        repeat {
            for _ in 0..<8 { sysPause() }
            if !sendingLane.withLock({ $0.isReaderAsleep }) { return }
        } while MonotonicInstant.now < end
    }

    /// So many times a bell is tried that the kernel has no memory for.
    private static let bellTries = 4

    /// Tells the peer, which sleeps, that something is in the ring.
    private func ringBell() throws(PortError) {
        var failure = SystemError(ENOBUFS)
        for _ in 0..<Self.bellTries {
            let outcome: SendOutcome
            do throws(SystemError) {
                outcome = try sendBell()
            } catch {
                failure = error
                continue
            }
            switch outcome {
            case .sent: return
            case .wouldBlock: continue  // there is room now
            case .peerClosed: return try checkReaderDidClose()
            }
        }
        // The packet is in the ring, and nobody would come to read it: whoever waits for an answer is told.
        close(PortError(failure))
    }

    /// - Returns: that it was sent also when the socket is full: it is readable then.
    private func sendBell() throws(SystemError) -> SendOutcome {
        let bell = PacketHeader(kind: .bell).words
        let outcome = try sysSendPacket(descriptor.rawValue, head: bell)
        guard case .wouldBlock = outcome else { return outcome }
        return try sysPoll(descriptor.rawValue, .writable, until: .distantPast).contains(.writable) ? outcome : .sent
    }

    /// Nothing has gone to the peer by the socket: it is awake or parked, as it says. Perhaps it has ended.
    private func lookForReader() throws(PortError) {
        sendingLane.withLock { $0.didLook() }
        // That nothing more comes from it may be of our own doing: this end's port has gone.
        let seen = (try? sysPoll(descriptor.rawValue, .peerClosed, until: .distantPast)) ?? []
        if !seen.isDisjoint(with: [.hangUp, .error]) { try checkReaderDidClose() }
    }

    /// A packet was written, and the peer is gone. If it has closed the ring, it did so after the packet: it drops the
    /// packet as it drops what lies in a socket. If it has not, it was killed; then nobody reads the packet any more, but it
    /// may have been read before, and then it was sent.
    private func checkReaderDidClose() throws(PortError) {
        if !sendingLane.withLock({ $0.isClosed || $0.isRead }) { throw peerDidClose() }
    }
}
