// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A loop that spins polls the ring, and the peer sends no wake-ups. That ends with the last packet that the loop
// receives, or before the loop sleeps: it reads the ring, asks the peer for wake-ups, and checks the ring once more. If
// it cannot read the ring to its end (the queue is full, for example), data remains for which no wake-up is pending
// (`hasUnsignalledData`). Until that is read, the ports that receive at the port's end get the event "writable", and a
// source that receives replies there is signalled. At the right's end, where only a peer that floods leads to this, the
// I/O thread reads on.

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection: BusyPollable {
    package func beginBusyPolling() -> UInt64? {
        if isInherited || isClosed { return nil }
        return receiver.state.withLockIfAvailable { $0.channel.path.beginPolling() } ?? nil
    }

    package func beginBusyPolling(on loop: ThreadRunLoop) {
        if let source = knownReplySource { loop.beginBusyPolling(at: self, for: source.id) }
    }

    package var hasArrived: Bool { receiver.ring.withObject { $0.isFilled } ?? false }

    package var producerProcessor: UInt64 { receiver.ring.withObject { $0.producerProcessor } ?? 0 }

    package func receiveArrivals() -> Bool {
        if isInherited { return true }
        let sink = self.sink
        // Where the loop may keep polling, `continueBusyPolling` or `endBusyPolling` follows.
        let mayKeepPolling = sink?.isReceivedElsewhere == false
        return !receive(into: sink, endsPolling: !mayKeepPolling).isWithinMessage
    }

    package var wakeChannel: WakeChannelRegistration? {
        isInherited ? nil : receiver.ringEnd.withLock { $0?.wakeChannel }
    }

    package func park(_ period: UInt64) -> Bool {
        if isInherited { return false }
        defer { receiver.dropUnreadIfPortEnded(from: self) }
        return receiver.state.withLock { state in
            guard let consumer = state.channel.path.consumer(polledIn: period) else { return false }
            consumer.park()
            // The end of the connection shuts the socket down afterwards, which ends the sleep.
            // A sleep counts as a poll that found nothing, until a packet is read from the ring.
            state.channel.path.didPollEmptyRing()
            if consumer.hasMore || isClosed {
                consumer.wake()
                return false
            }
            if !state.channel.path.isWorthPolling { receiver.polledPeriod.store(0, ordering: .sequentiallyConsistent) }
            return true
        }
    }

    package func unpark(_ period: UInt64) {
        if isInherited { return }
        defer { receiver.dropUnreadIfPortEnded(from: self) }
        receiver.state.withLock { state in
            if state.channel.path.period == period { state.channel.path.consumer?.ring.unpark() }
        }
    }

    package func isBusyPolled(_ period: UInt64) -> Bool {
        receiver.polledPeriod.load(ordering: .sequentiallyConsistent) == period && !isClosed && !isInherited
    }

    /// Whether some loop keeps polling.
    var isBusyPolled: Bool { receiver.polledPeriod.load(ordering: .sequentiallyConsistent) != 0 && !isClosed }

    package func continueBusyPolling(_ period: UInt64, for source: ItemID, on loop: ThreadRunLoop) -> Bool {
        guard !isInherited, let sink else { return false }
        defer { receiver.dropUnreadIfPortEnded(from: self) }
        var only: RunLoopSource?  // released without the lock
        return receiver.state.withLock { state in
            guard let consumer = state.channel.path.consumer(polledIn: period), !state.channel.path.hasSpentWakeUp,
                state.channel.path.isWorthPolling, !consumer.hasMore
            else { return false }
            // Stored first: another receiver begins first, and then loads this. One of the two sees the other.
            receiver.polledPeriod.store(period, ordering: .sequentiallyConsistent)
            only = sink.onlySource
            if let only, only.id == source, only.isIn(only: loop), sink.sockets?.isBusy(self) == true,
                isPortSoleListener
            {
                return true
            }
            receiver.polledPeriod.store(0, ordering: .sequentiallyConsistent)
            return false
        }
    }

    /// Whether only the port receives from the connection.
    private var isPortSoleListener: Bool {
        state.withLock { state in
            state.life.failure == nil && !state.life.hasLostOwnSide && state.source == nil
                && state.coldState.listeners.isEmpty
        }
    }

    /// Another receiver has begun: a loop that polls the ring while it handles messages stops that. Must not be called
    /// under the lock of a receiver.
    func endPollingWhileHandling() {
        if receiver.polledPeriod.exchange(0, ordering: .sequentiallyConsistent) != 0 { endBusyPolling() }
    }

    /// The same, soon, where such a lock may be held. Without an I/O thread the polling loop ends it, when its handler
    /// returns.
    func endPollingWhileHandlingSoon() {
        if receiver.polledPeriod.exchange(0, ordering: .sequentiallyConsistent) != 0 { try? endBusyPollingOnIOThread() }
    }

    package func endBusyPolling(_ period: UInt64) {
        if isInherited { return }
        if receiver.state.withLock({ $0.channel.path.period == period }) { endBusyPolling() }
    }

    /// Ends the polling, if there is any.
    func endBusyPolling() {
        // If another thread ends it, a loop that is parked stays asleep: its set has the socket, too.
        let mustRead = receiver.state.withLock { state in
            receiver.polledPeriod.store(0, ordering: .sequentiallyConsistent)
            return state.channel.path.stopPolling()
        }
        // `receiveArrivals` or another thread has ended it, or the ring was left: the kernel reports what comes.
        if !mustRead { return }
        for _ in 0..<(isPortsEnd ? 1 : Tuning.passLimit) {
            receive(into: sink)
            if !receiver.hasUnsignalledData.load(ordering: .acquiring) { return }
        }
        if isPortsEnd { return }
        // What would keep this thread reading endlessly, the I/O thread reads.
        do throws(PortError) {
            try endBusyPollingOnIOThread()
        } catch {
            close(error)
        }
    }

    private func endBusyPollingOnIOThread() throws(PortError) {
        try IOThread.loop().perform { [weak self] in self?.endBusyPolling() }
    }
}

extension SocketConnection {
    /// Whether there is data for which no wake-up is pending, and it may be read now. If it may not yet, the event that
    /// allows it has it read.
    var hasReadableData: Bool {
        guard receiver.hasUnsignalledData.load(ordering: .sequentiallyConsistent), !isInherited, !isPaused, let sink
        else { return false }
        return sink.hasRoomForSockets()
    }

    /// Signals the source that receives only replies at the port's end, if there is data without a pending wake-up.
    func signalSource() {
        guard hasReadableData, let source = knownReplySource else { return }
        source.ring()
    }
}

extension PortSockets {
    /// Notes that a connection's ring had data.
    func noteBusyRing(of member: SocketConnection) {
        guard member.isPortsEnd, member.hasRings, !member.isClosed else { return }
        let other = state.withLock { state -> SocketConnection? in
            if state.busyRings.last === member || !state.isMember(member) { return nil }
            state.busyRings.removeAll { $0 === member }
            let other = state.busyRings.count == Tuning.busyLimit ? state.busyRings.removeFirst() : nil
            state.busyRings.append(member)
            return other
        }
        other?.endPollingWhileHandling()
    }

    /// Whether loops poll the ring of the connection.
    func isBusy(_ member: SocketConnection) -> Bool {
        state.withLock { state in state.busyRings.contains { $0 === member } }
    }

    /// Ends the polling of loops that poll connections while they handle messages.
    func endPollingWhileHandling() {
        for member in state.withLock({ $0.busyRings }) { member.endPollingWhileHandling() }
    }
}
