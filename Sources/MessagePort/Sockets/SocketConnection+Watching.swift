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

extension ReceivingLane {
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

extension SocketConnection: ArrivalPlace {
    package func beginLooking() -> Bool {
        if isInherited || isClosed { return false }
        let hasBegun = assembly.withLockIfAvailable { arrival in
            // With a bell in the socket the kernel tells already.
            guard let reader = arrival.lane.reader, arrival.lane.isOnRing, !arrival.lane.headIsSpent,
                !arrival.lane.isWatched, !arrival.lane.wasWatched, arrival.lane.isWorthLooking
            else { return false }
            arrival.lane.beginLooking()
            reader.wake()
            return true
        }
        return hasBegun ?? false
    }

    package var hasArrived: Bool { incomingRing.withObject { $0.isFilled } ?? false }

    package func takeIn() -> Bool { !receive(into: port?.object, endsLooking: true).isWithinMessage }

    /// So many times what a ring holds is read at the right's end before another thread does.
    private static let passLimit = 256

    package func endLooking() {
        let isDone = assembly.withLock { arrival in
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
            try SharedReceiver.loop().perform { [weak self] in self?.endLooking() }
        } catch {
            close(error)
        }
    }

    /// Notes whether something may be in the ring of which nobody will tell.
    ///
    /// - Returns: whether that has changed for those who listen.
    func noteUntold(_ lane: ReceivingLane) -> Bool {
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
    /// So many connections a loop that spins looks at.
    private static let busyLimit = 4

    /// A connection had something.
    func noteRing(of member: SocketConnection) {
        guard member.port != nil, member.hasRings, !member.isClosed else { return }
        state.withLock { state in
            if state.busyRings.last === member || state.keys[ObjectIdentifier(member)] == nil { return }
            state.busyRings.removeAll { $0 === member }
            if state.busyRings.count == Self.busyLimit { state.busyRings.removeFirst() }
            state.busyRings.append(member)
        }
    }
}

extension PortCore {
    /// Calls `body` with each place where a loop that spins looks for messages of other processes.
    func visitArrivalPlaces(_ body: (any ArrivalPlace) -> Void) {
        if isInherited { return }
        for ring in sockets?.state.withLock({ $0.busyRings }) ?? [] { body(ring) }
    }
}
