// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// The sockets of one port: its listener, the connections of its clients, and connections over which it awaits replies,
// all in one epoll set. The set's own descriptor is readable when any of them is, so a run loop watches one descriptor
// for the port, however many clients it has.
package final class PortSockets: Sendable {
    struct State: ~Copyable {
        var listener: Listener?
        /// Whether clients may wait that have connected before this process listened at a port that has come: to them the
        /// kernel names the former owner.
        var hasFormerBacklog = false
        /// The I/O thread's watch of the listener.
        var backgroundWatch: UInt64?
        /// By their numbers, which are their keys in the set.
        var members: [UInt64: SocketConnection] = [:]
        /// How many there have been.
        var joinCount = 0
        /// The events that paused connections wait for.
        var pausedInterests: [UInt64: EpollEvents] = [:]
        /// The paused connections that were removed from the set. One is added again when it is to be read, as soon as
        /// the kernel allows it.
        var unwatched: Set<UInt64> = []
        /// The read ends of pipes that count rights.
        var readEnds: [UInt64: PipeEnd] = [:]
        /// The connections with rings that had data last.
        var busyRings: [SocketConnection] = []
        var soleActive = SoleActivePeer()
        /// The number of polls, so that each begins with another of the ready sockets.
        var pollCount = 0
        var phase = Phase.open

        func isMember(_ connection: SocketConnection) -> Bool { members[connection.number] === connection }
    }

    enum Phase {
        case open
        /// The listener is not watched for a moment.
        case listenerPaused
        case frozen  // by a move to another process
        case closed
    }

    static let listenerKey: UInt64 = 0

    let epoll: EpollSet  // immutable
    let state = Mutex(State())
    let quotas = PeerQuotas()
    /// Locked while a client is accepted and becomes a member, unless a policy of the program's is asked meanwhile; and
    /// while the policy changes.
    let accepting = Mutex(())
    /// Locked while the I/O thread, or one that waits for a reply, moves messages from the sockets into the queue.
    let moving = Mutex(())
    /// Accepts clients while no thread polls; set when the port first listens.
    let background = SetOnceReference<BackgroundAcceptor>()
    /// Whether the kernel has failed to add a connection to the set again.
    private let lacksConnection = Atomic<Bool>(false)
    private let forkGuard = ForkGuard()  // immutable

    package init() throws(PortError) { epoll = try PortError.converting(EpollSet()) }

    /// Whether these are a forked child's copies of its parent's sockets.
    var isInherited: Bool { forkGuard.isInherited }

    /// The descriptor to wait on.
    var rawValue: CInt { epoll.raw }

    /// Opens a listening socket under an unguessable path.
    ///
    /// - Returns: its address; the same each time.
    func listen(in directory: PortDirectory, for sink: any MessageSink) throws(PortError) -> PortAddress {
        ReservedDescriptor.shared.reserve()
        return try listen(on: directory.endpoints().makeListener(backlog: Tuning.listenBacklog), for: sink).address
    }

    /// Listens on a socket. If the port has one already, that stays, and the new one is closed, unless its path is
    /// `path`, which is gone: then it is replaced. The connections stay.
    ///
    /// - Returns: the port's address, and whether the socket was taken.
    /// - Throws: `invalidPort` when the sockets are closed; why the kernel cannot watch the socket.
    func listen(
        on listener: consuming Listener, inPlaceOf path: String? = nil, for sink: any MessageSink
    ) throws(PortError) -> (address: PortAddress, isTaken: Bool) {
        let address = PortAddress(path: listener.path)
        background.set(BackgroundAcceptor(self, for: sink))
        let watches = try? IOThread.arrivals()
        var offered: Listener? = consume listener
        var old: Listener?  // closed after the unlock, when its watch has ended
        var oldWatch: UInt64?
        let result = state.withLock { (state) -> Result<(PortAddress, Bool), PortError> in
            if state.phase == .closed { return .failure(PortError(.invalidPort)) }
            if let existing = state.listener?.path, existing != path {
                return .success((PortAddress(path: existing), false))
            }
            guard let listener = offered.take() else { return .failure(PortError(.invalidPort)) }
            var watch: UInt64?
            do throws(SystemError) {
                try epoll.add(listener.descriptor.raw, .readable, key: Self.listenerKey)
                // What it reports at once is handled after the unlock.
                if !listener.isSupervisors {
                    watch = try background.object?.watch(listener.descriptor.raw, in: watches) ?? nil
                }
            } catch {
                epoll.remove(listener.descriptor.raw)
                return .failure(PortError(error))
            }
            old = state.listener.take()
            if let gone = old?.descriptor.raw { epoll.remove(gone) }
            (oldWatch, state.backgroundWatch) = (state.backgroundWatch, watch)
            state.hasFormerBacklog = listener.hasMoved
            state.listener = consume listener
            return .success((address, true))
        }
        BackgroundAcceptor.endWatch(oldWatch)
        _ = consume old
        // The port may have ended before it had the acceptor, which retains it.
        if state.withLock({ $0.phase == .closed }) { background.withObject { $0.end() } }
        return try result.get()
    }

    /// Adds a connection to the set. A client of the port that owns these sockets counts as one of its senders until
    /// its connection is found closed. For one that was accepted now the limit of connections for its process applies.
    ///
    /// - Throws: `tooManyConnections`; `invalidPort` when it was accepted of a port that has ended since; or why the
    ///   kernel cannot watch it, or why no thread can end the polling of it.
    func add(_ connection: SocketConnection, isAccepted: Bool = false) throws(PortError) {
        // A port that is ending no longer has the sockets.
        let sink = connection.sink.flatMap { isAccepted || $0.sockets === self ? $0 : nil }
        if sink == nil, connection.isBusyPolled { _ = try IOThread.loop() }
        let result = state.withLock { state -> Result<UInt64?, PortError> in
            if state.phase == .closed { return isAccepted ? .failure(PortError(.invalidPort)) : .success(nil) }
            if state.isMember(connection) { return .success(nil) }
            let (key, owner) = (connection.number, connection.owner)
            if sink != nil, !quotas.withLock({ $0.connect(key, of: owner, isLimited: isAccepted) }) {
                return .failure(PortError(.tooManyConnections))
            }
            state.joinCount += 1
            state.members[key] = connection
            // It was accepted before the port was frozen, and nothing was received over it.
            if state.phase == .frozen, isAccepted {
                connection.receiver.isFrozen.store(true, ordering: .sequentiallyConsistent)
            }
            return .success(key)
        }
        guard let key = try result.get() else { return }
        // Counted first: from the next line on its end may be found.
        sink?.clientDidConnect()
        if sink == nil { connection.addListener(self) }
        do throws(SystemError) {
            try state.withLock { (state) throws(SystemError) in
                let interest = connection.interest  // a connection of another port may be paused
                state.pausedInterests[key] = interest == .arrival ? nil : interest
                try epoll.add(connection.descriptor.rawValue, interest, key: key)
            }
        } catch {
            if remove(key) { sink?.clientDidNotConnect() }
            throw PortError(error)
        }
    }

    /// Adds a connection over which a reply to a message of the port may come.
    func add(over connection: any ReplyConnection) throws(PortError) {
        // There are no other types.
        if let connection = connection as? SocketConnection { try add(connection) }
    }

    /// Registers the connection's current interest with the kernel, under the lock, so that the last change wins.
    func updateInterest(in connection: SocketConnection) {
        let isLost = state.withLock { state in
            if !state.isMember(connection) || connection.isFrozen { return false }
            let key = connection.number
            let interest = connection.interest
            if interest == state.pausedInterests[key] ?? .arrival { return false }
            if state.unwatched.contains(key) {
                guard interest.contains(.readable) else { return false }
                guard (try? epoll.add(connection.descriptor.rawValue, interest, key: key)) != nil else { return true }
                state.unwatched.remove(key)
            } else {
                try? epoll.modify(connection.descriptor.rawValue, interest, key: key)
            }
            state.pausedInterests[key] = interest == .arrival ? nil : interest
            return false
        }
        if isLost { rewatchLater() }
    }

    /// The kernel has no resources to add a connection to the set again. Retried after a while, and at each receive.
    private func rewatchLater() {
        if lacksConnection.exchange(true, ordering: .sequentiallyConsistent) { return }
        guard let loop = try? IOThread.loop() else { return }
        loop.add(RunLoopTimer(after: Tuning.timeUntilRetry) { [weak self] _ in self?.rewatch() })
    }

    private func rewatch() {
        guard lacksConnection.exchange(false, ordering: .sequentiallyConsistent) else { return }
        for member in state.withLock({ state in state.unwatched.compactMap { state.members[$0] } }) {
            updateInterest(in: member)
        }
    }

    /// Receives what has arrived on any of the sockets. Never waits. For the source of a generation, whose handler takes
    /// a message at once, one packet is enough, and the rest may wait for the next poll: see `SoleActivePeer`.
    ///
    /// - Returns: how many sockets were ready; zero when nothing is left to read.
    func receive(into sink: any MessageSink, _ budget: inout ReceiveBudget, forGeneration generation: UInt64? = nil)
        -> Int
    {
        if let generation, receiveFromSoleActive(into: sink, generation, &budget) { return 1 }
        background.object?.didPoll()
        ReservedDescriptor.shared.restore()
        if lacksConnection.load(ordering: .relaxed) { rewatch() }
        var count = 0
        for round in 0..<Tuning.reportRounds {
            // With both locks: what the I/O thread has accepted is reported, and what it has moved is queued.
            let reports =
                round == 0
                ? moving.withLock { _ in accepting.withLock { _ in epoll.wait(until: .distantPast) } }
                : epoll.wait(until: .distantPast)
            count += reports.count
            let hasSkippedSome = receive(reports, into: sink, &budget)
            // A client that was reported as waiting may have been accepted by the I/O thread since: then it is reported now.
            let mayHaveMissedOne = round == 0 && reports.contains { $0.key == Self.listenerKey }
            // Other connections may wait behind many that are not read.
            let mayHideOthers = hasSkippedSome && reports.count >= EpollSet.reportLimit
            guard mayHaveMissedOne || mayHideOthers, !budget.isSpent else { break }
        }
        return count
    }

    @discardableResult
    func receive(into sink: any MessageSink) -> Int {
        var budget = sink.receiveBudget
        return receive(into: sink, &budget)
    }

    /// - Returns: whether there is a sole active connection, and it had a packet.
    private func receiveFromSoleActive(into sink: any MessageSink, _ generation: UInt64, _ budget: inout ReceiveBudget)
        -> Bool
    {
        guard let member = state.withLock({ $0.soleActive.next() }) else { return false }
        if budget.grant(to: member.owner) > 0 {
            sink.beginExclusiveReceive(inGeneration: generation)
            let (count, hasMore, _) = member.receive(into: member.sink, limit: 1)
            budget.spend(count, by: member.owner)
            noteBusyRing(of: member)
            if hasMore { return true }
            sink.cancelExclusiveReceive()
        }
        state.withLock { $0.soleActive.didFindNothing() }
        return false
    }

    /// - Returns: whether some were not read because of what their processes use.
    private func receive(_ reports: [EpollReport], into sink: any MessageSink, _ budget: inout ReceiveBudget) -> Bool {
        // The kernel reports them in the same order each time: where slots are few, the first would get them all.
        let pollCount = state.withLock { state in
            state.pollCount &+= 1
            return state.pollCount
        }
        if reports.contains(where: { $0.key == Self.listenerKey }) { acceptSome(for: sink, &budget) }
        var (hasSkippedSome, endedCount, soleActive) = (false, 0, SocketConnection?.none)
        for index in reports.indices {
            let report = reports[(index + pollCount % reports.count) % reports.count]
            guard let member = state.withLock({ $0.members[report.key] }) else {
                handleHangUp(report, of: sink)
                continue
            }
            let grant = budget.grant(to: member.owner)
            if grant == 0 {
                hasSkippedSome = true
                continue
            }
            let (count, hasMore) = receive(report, from: member, into: sink, limit: grant)
            budget.spend(count, by: member.owner)
            // The second read found nothing.
            if reports.count == 1, count == 2, !hasMore { soleActive = member }
            if member.isThrottled { hasSkippedSome = true }
            if removeEnded(member, report.key, of: sink), !member.isOnlyObserving { endedCount += 1 }
        }
        state.withLock { state in
            // A connection that was removed is not retained.
            let isHere = soleActive.map { state.isMember($0) } ?? false
            state.soleActive.didPoll(found: isHere ? soleActive : nil)
        }
        if endedCount > 0 {
            // A client that has connected since is a sender: the port still has one then. Once for all that have ended,
            // not for each: otherwise a client that keeps connecting and disconnecting would occupy the port.
            // Where that is spent, a notice that no sender is left waits until the backlog was accepted.
            acceptSome(for: sink, &budget)
            for _ in 0..<endedCount { sink.clientDidDisconnect() }
        }
        return hasSkippedSome
    }

    /// - Returns: as the connection's `receive`.
    private func receive(
        _ report: EpollReport, from member: SocketConnection, into sink: any MessageSink, limit: Int
    ) -> (count: Int, hasMore: Bool) {
        // There is room for the backlog, or no peer to read it.
        if !EpollEvents.arrival.isSuperset(of: report.events) { member.flush() }
        // A right's end never gets messages for a port, and another port's connection has its own.
        let result = member.receive(into: member.sink, limit: limit, depth: .reported)
        if member.isObserving { background.object?.awaitQuery(of: member) }
        noteBusyRing(of: member)
        if !report.events.isDisjoint(with: .hangUpOrError), member.isThrottled {
            member.peerDidDisconnect()
            unwatch(member)
        }
        return (result.count, result.hasMore)
    }

    /// Removes a connection from the set.
    ///
    /// - Returns: false when it was not in the set.
    func remove(_ key: UInt64) -> Bool {
        let member = state.withLock { state in
            let member = state.members.removeValue(forKey: key)
            state.pausedInterests[key] = nil
            state.unwatched.remove(key)
            state.busyRings.removeAll { $0 === member }
            if let member { state.soleActive.forget(member) }
            quotas.withLock { $0.disconnect(key) }
            return member
        }
        guard let member else { return false }
        epoll.remove(member.descriptor.rawValue)
        return true
    }

    /// Closes the listener and the connections. A connection over which the port still owes a reply lives until that is
    /// sent, but its client can send nothing more.
    func close() {
        var listener: Listener?  // closed without the lock
        var watch: UInt64?
        var readEnds: [UInt64: PipeEnd] = [:]
        let members = accepting.withLock { _ in
            state.withLock { state in
                state.phase = .closed
                swap(&readEnds, &state.readEnds)
                swap(&listener, &state.listener)
                swap(&watch, &state.backgroundWatch)
                state.soleActive = SoleActivePeer()
                defer { (state.members, state.busyRings) = ([:], []) }
                return state.members
            }
        }
        BackgroundAcceptor.endWatch(watch)
        for end in readEnds.values { epoll.remove(end.descriptor.rawValue) }
        background.withObject { $0.end() }
        quotas.whenBelowLimits(nil)
        // In the order in which they came: where a question for room finds no port, its sender's connection has ended.
        for (_, member) in members.sorted(by: { $0.key < $1.key }) {
            epoll.remove(member.descriptor.rawValue)
            // A connection of another port stays open there.
            if member.isPortsEnd, !member.hasListener(self) { member.portDidEnd() }
        }
        _ = consume listener
    }
}
