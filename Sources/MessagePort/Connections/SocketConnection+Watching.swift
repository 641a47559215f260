// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A loop that spins looks into the ring by itself, and the peer sends no bells. That ends with the last packet that it takes
// in, or before the loop sleeps: the ring is read, the peer told to send bells, and the ring looked at once more. When it cannot be read to its end, because the
// queue is full, say, there is something in it of which nobody will tell: it is untold. Then the ports that listen to the
// port's end are told that the socket has room, until it was read, and a source that listens there for replies is rung. At
// the right's end, where only a peer that floods gets so far, the shared thread reads on.

import PortSystem
import RunLoopCore
import Synchronization

extension IncomingPath {
    /// The next packet is on the socket. The packet there that leads back to the ring stays until the ring is empty.
    ///
    /// - Parameter count: so many packets at least come before that one.
    mutating func leaveRing(before count: Int) {
        (isOnRing, isWatched, wasWatched, promisedCount) = (false, false, false, count)
    }

    /// A loop has read what it has found in the ring by itself, and does not look any more.
    ///
    /// - Returns: whether that was the end; otherwise it goes on to look.
    mutating func endLooking() -> Bool {
        guard isWatched, isOnRing, !headIsSpent else { return false }
        isWatched = false
        isWatched = mustReadOn()
        return !isWatched
    }

    /// The ring was found empty, while there was no bell or since.
    ///
    /// - Returns: whether something has come meanwhile that nobody will tell of.
    mutating func mustReadOn() -> Bool {
        guard let reader else { return false }
        if isWatched { return reader.hasMore }
        reader.sleep()
        if reader.hasMore {
            reader.wake()
            return true
        }
        wasWatched = false
        return false
    }
}

extension SocketConnection: BusyPollable {
    package func beginLooking() -> UInt64? {
        if isInherited || isClosed { return nil }
        let look = assembly.withLockIfAvailable { arrival -> UInt64? in
            // With a bell in the socket the kernel tells already.
            guard let reader = arrival.lane.reader, arrival.lane.isOnRing, !arrival.lane.headIsSpent,
                !arrival.lane.isWatched, !arrival.lane.wasWatched, arrival.lane.isWorthLooking
            else { return nil }
            arrival.lane.beginLooking()
            reader.wake()
            return arrival.lane.look
        }
        return look ?? nil
    }

    package var hasArrived: Bool { incomingRing.withObject { $0.isFilled } ?? false }

    package func takeIn() -> Bool {
        let core = port?.object
        // Where the loop may go on to look, `keepLooking` or `endLooking` follows.
        let mayKeep = core?.isReceivedElsewhere == false
        return !receive(into: core, endsLooking: !mayKeep).isWithinMessage
    }

    package var wakeChannel: WakeChannelWatch? { ringEnd.object?.wakeChannel }

    package func park(_ look: UInt64) -> ParkAnswer {
        if isInherited { return .ended }
        defer { dropUnreadIfDeaf() }
        return assembly.withLock { arrival in
            guard let reader = arrival.lane.reader, arrival.lane.isWatched, arrival.lane.isOnRing,
                arrival.lane.look == look
            else { return .ended }
            reader.park()
            // The end of the connection shuts the socket down afterwards, which ends the sleep.
            // It counts as a poll that found nothing, until a packet is taken from the ring.
            arrival.lane.didLookInVain()
            if reader.hasMore || isClosed {
                reader.wake()
                return isClosed ? .ended : .arrived
            }
            if !arrival.lane.isWorthLooking { keptLook.store(0, ordering: .sequentiallyConsistent) }
            return .parked
        }
    }

    package func unpark(_ look: UInt64) {
        if isInherited { return }
        defer { dropUnreadIfDeaf() }
        assembly.withLock { arrival in
            if arrival.lane.look == look { arrival.lane.reader?.ring.unpark() }
        }
    }

    package func isKept(_ look: UInt64) -> Bool {
        keptLook.load(ordering: .sequentiallyConsistent) == look && !isClosed && !isInherited
    }

    /// Whether some loop has not stopped to look.
    var isKept: Bool { keptLook.load(ordering: .sequentiallyConsistent) != 0 && !isClosed }

    package func keepLooking(_ look: UInt64, for source: ItemID, on loop: ThreadRunLoop) -> Bool {
        guard !isInherited, let core = port?.object else { return false }
        defer { dropUnreadIfDeaf() }
        var only: RunLoopSource?  // goes without the lock
        return assembly.withLock { arrival in
            guard let reader = arrival.lane.reader, arrival.lane.isWatched, arrival.lane.isOnRing,
                arrival.lane.look == look, !arrival.lane.headIsSpent, arrival.lane.isWorthLooking, !reader.hasMore
            else { return false }
            // Said first: who begins to listen does so first, and then looks whether this was said. One of the two sees the other.
            keptLook.store(look, ordering: .sequentiallyConsistent)
            only = core.onlySource
            if let only, only.id == source, only.isIn(only: loop), core.sockets?.isBusy(self) == true,
                isHeardByPortAlone
            {
                return true
            }
            keptLook.store(0, ordering: .sequentiallyConsistent)
            return false
        }
    }

    /// Whether nobody but the port listens to the connection.
    private var isHeardByPortAlone: Bool {
        state.withLock { state in
            state.life.failure == nil && !state.life.hasLostOwner && state.source == nil && state.listeners.isEmpty
        }
    }

    /// Somebody else listens from now on: a loop that looks into the ring while it handles stops that. Not to be asked under the
    /// lock of an `assembly`.
    func endKeeping() {
        if keptLook.exchange(0, ordering: .sequentiallyConsistent) != 0 { endLooking() }
    }

    /// The same, soon, where such a lock may be held.
    func endKeepingSoon() {
        if keptLook.exchange(0, ordering: .sequentiallyConsistent) != 0 { readOn() }
    }

    package func endLooking(_ look: UInt64) {
        if isInherited { return }
        if assembly.withLock({ $0.lane.look == look }) { endLooking() }
    }

    /// So many times what a ring holds is read at the right's end before another thread does.
    private static let passLimit = 256

    /// Ends whatever look there is.
    func endLooking() {
        // Where it is another thread that ends it, a loop that is parked sleeps on: its set has the socket, too.
        let isDone = assembly.withLock { arrival in
            keptLook.store(0, ordering: .sequentiallyConsistent)
            defer { arrival.lane.isWatched = false }
            return !arrival.lane.isWatched && !arrival.lane.wasWatched
        }
        // `takeIn` has ended it already, or another thread, or the ring was left: then the kernel tells.
        if isDone { return }
        for _ in 0..<(port == nil ? Self.passLimit : 1) {
            receive(into: port?.object)
            if !isUntold.load(ordering: .acquiring) { return }
        }
        if port == nil { readOn() }
    }

    /// Has the shared thread read what this one would have to read for ever.
    private func readOn() {
        do throws(PortError) {
            try IOThread.loop().perform { [weak self] in self?.endLooking() }
        } catch {
            close(error)
        }
    }

    /// Notes whether something may be in the ring of which nobody will tell.
    ///
    /// - Returns: whether that has changed for those who listen.
    func noteUntold(_ lane: IncomingPath) -> Bool {
        let isNow = lane.wasWatched && !lane.isWatched && !isClosed
        return isUntold.exchange(isNow, ordering: .sequentiallyConsistent) != isNow && port != nil
    }
}

extension SocketConnection {
    /// Whether something is untold that may be read now. When it may be read later, whoever sees to that reads it.
    var hasReadableUntold: Bool {
        guard isUntold.load(ordering: .sequentiallyConsistent), !isPaused, let core = port?.object else { return false }
        return core.hasRoomForSockets()
    }

    /// Tells those who listen to the port's end alone, for replies, of what is untold.
    func ringSource() {
        guard hasReadableUntold, let source = state.withLock({ $0.source }) else { return }
        source.ring()
    }
}

extension PortSockets {
    /// A loop polls the rings of this many connections of a port.
    static let busyLimit = 4

    /// A connection had something.
    func noteRing(of member: SocketConnection) {
        guard member.port != nil, member.hasRings, !member.isClosed else { return }
        let other = state.withLock { state -> SocketConnection? in
            if state.busyRings.last === member || state.keys[ObjectIdentifier(member)] == nil { return nil }
            state.busyRings.removeAll { $0 === member }
            let other = state.busyRings.count == Self.busyLimit ? state.busyRings.removeFirst() : nil
            state.busyRings.append(member)
            return other
        }
        other?.endKeeping()
    }

    /// Whether a loop looks at this one.
    func isBusy(_ member: SocketConnection) -> Bool {
        state.withLock { state in state.busyRings.contains { $0 === member } }
    }

    /// Loops that look at connections while they handle stop that.
    func endKeeping() {
        for member in state.withLock({ $0.busyRings }) { member.endKeeping() }
    }
}
