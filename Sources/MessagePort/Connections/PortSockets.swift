// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// The sockets of one port: its listener, the connections of its clients, and connections over which it awaits replies,
// all in one epoll set. The set's own descriptor is readable when any of them is, so a run loop watches one descriptor
// for the port, however many clients it has.
package final class PortSockets: QuotaObserver {
    struct State: ~Copyable {
        var listener: Listener?
        var lastKey: UInt64 = listenerKey
        var members: [UInt64: SocketConnection] = [:]
        var keys: [ObjectIdentifier: UInt64] = [:]
        /// What is waited for on those connections that are paused.
        var pausedInterests: [UInt64: EpollEvents] = [:]
        /// Those among them that have left the set. One comes back when it is to be read, as soon as the kernel takes it.
        var silenced: Set<UInt64> = []
        /// The connections with rings that had something last.
        var busyRings: [SocketConnection] = []
        var soleActive = SoleActivePeer()
        /// The number of looks, to begin each with another of the sockets that are ready.
        var pollCount = 0
        var isClosed = false
        /// The listener is not watched for a moment.
        var isListenerPaused = false
    }

    static let listenerKey: UInt64 = 0
    /// How many connections may wait to be accepted; the kernel may allow fewer (`net.core.somaxconn`).
    static let backlog: Int32 = 4096

    let epoll: EpollSet  // immutable
    let state = Mutex(State())
    let accounts = PeerQuotas()
    /// The kernel has not taken a connection back into the set.
    private let lacksConnection = Atomic<Bool>(false)
    private let forkCount = sysForkCount()  // immutable

    package init() throws(PortError) {
        do throws(SystemError) {
            epoll = try EpollSet()
        } catch {
            throw PortError(error)
        }
    }

    /// Whether these are a forked child's copies of its parent's.
    var isInherited: Bool { sysForkCount() != forkCount }

    /// The descriptor to wait on.
    var rawValue: CInt { epoll.raw }

    /// Opens a listening socket under a path that nobody can guess.
    ///
    /// - Returns: its address; the same each time.
    func listen(in directory: PortDirectory) throws(PortError) -> PortAddress {
        SpareDescriptor.shared.reserve()
        return try listen(on: directory.endpoints().makeListener(backlog: Self.backlog)).address
    }

    /// Listens with a socket. One that the port has already stays, and the other is closed.
    ///
    /// - Returns: the address of the port, and whether the socket was taken.
    func listen(on listener: consuming Listener) throws(PortError) -> (address: PortAddress, isTaken: Bool) {
        let address = PortAddress(path: listener.path)
        var offered: Listener? = consume listener
        let result = state.withLock { (state) -> Result<(PortAddress, Bool), PortError> in
            if state.isClosed { return .failure(PortError(.invalidPort)) }
            if let existing = state.listener?.path { return .success((PortAddress(path: existing), false)) }
            guard let listener = offered.take() else { return .failure(PortError(.invalidPort)) }
            do throws(SystemError) {
                try epoll.add(listener.descriptor.raw, .readable, key: Self.listenerKey)
            } catch {
                return .failure(PortError(error))
            }
            state.listener = consume listener
            return .success((address, true))
        }
        return try result.get()
    }

    /// Listens to a connection too. A client of the port whose sockets these are is counted as one of its senders,
    /// until it is found closed.
    ///
    /// - Parameters:
    ///   - connection: the connection.
    ///   - isLimited: whether its process may have too many.
    /// - Throws: `tooManyConnections`, or why the kernel cannot watch it.
    func add(_ connection: SocketConnection, isLimited: Bool = false) throws(PortError) {
        let sink = connection.port?.object.flatMap { $0.sockets === self ? $0 : nil }
        let result = state.withLock { state -> Result<UInt64?, PortError> in
            if state.isClosed || state.keys[ObjectIdentifier(connection)] != nil { return .success(nil) }
            let (key, owner) = (state.lastKey + 1, connection.owner)
            if sink != nil, !accounts.withLock({ $0.connect(key, of: owner, isLimited: isLimited) }) {
                return .failure(PortError(.tooManyConnections))
            }
            state.lastKey = key
            state.members[key] = connection
            state.keys[ObjectIdentifier(connection)] = key
            return .success(key)
        }
        guard let key = try result.get() else { return }
        // Counted first: from the next line on its end may be found.
        sink?.clientDidConnect()
        if sink == nil {
            connection.state.withLock { state in
                state.listeners.removeAll { $0.object == nil || $0.object === self }
                state.listeners.append(WeakReference(object: self))
            }
            connection.endPollingWhileHandlingSoon()
        }
        do throws(SystemError) {
            try state.withLock { (state) throws(SystemError) in
                let interest = connection.interest  // one of another port may be paused
                state.pausedInterests[key] = interest == .arrival ? nil : interest
                try epoll.add(connection.descriptor.rawValue, interest, key: key)
            }
        } catch {
            if remove(key) { sink?.clientDidNotConnect() }
            throw PortError(error)
        }
    }

    /// Listens to a connection over which a reply to a message of the port may come.
    func add(over connection: any ReplyConnection) throws(PortError) {
        // There are no others.
        if let connection = connection as? SocketConnection { try add(connection) }
    }

    /// Waits from now on for what the connection is to be waited for. The kernel is told under the lock, so that what
    /// was said last is what holds.
    func updateInterest(in connection: SocketConnection) {
        let isLost = state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)] else { return false }
            let interest = connection.interest
            if interest == state.pausedInterests[key] ?? .arrival { return false }
            if state.silenced.contains(key) {
                guard interest.contains(.readable) else { return false }
                guard (try? epoll.add(connection.descriptor.rawValue, interest, key: key)) != nil else { return true }
                state.pausedInterests[key] = interest == .arrival ? nil : interest
                state.silenced.remove(key)
                return false
            }
            state.pausedInterests[key] = interest == .arrival ? nil : interest
            try? epoll.modify(connection.descriptor.rawValue, interest, key: key)
            return false
        }
        if isLost { restoreSilencedLater() }
    }

    /// The kernel has nothing left to take a connection back into the set with. It is asked again after a while, and whenever
    /// somebody receives.
    private func restoreSilencedLater() {
        if lacksConnection.exchange(true, ordering: .sequentiallyConsistent) { return }
        guard let loop = try? IOThread.loop() else { return }
        loop.add(RunLoopTimer(after: Self.timeUntilRetry) { [weak self] _ in self?.restoreSilenced() })
    }

    private func restoreSilenced() {
        guard lacksConnection.exchange(false, ordering: .sequentiallyConsistent) else { return }
        for member in state.withLock({ state in state.silenced.compactMap { state.members[$0] } }) {
            updateInterest(in: member)
        }
    }

    /// So many times the kernel is asked in one look, 64 sockets each: as long as those that it names are put aside.
    private static let roundLimit = 8

    /// Receives what has arrived on any of the sockets. Never waits.
    ///
    /// - Parameters:
    ///   - sink: the port.
    ///   - budget: how many packets may still be read.
    ///   - generation: the number of the source whose handler takes what comes, at once: one packet will do, and the rest may
    ///     wait for the next look: see `SoleActivePeer`.
    /// - Returns: how many were ready; zero when nothing is left to read.
    func receive(into sink: any MessageSink, _ budget: inout ReceiveBudget, forGeneration generation: UInt64? = nil)
        -> Int
    {
        if let generation, receiveFromSoleActive(into: sink, generation, &budget) { return 1 }
        SpareDescriptor.shared.restore()
        if lacksConnection.load(ordering: .relaxed) { restoreSilenced() }
        var count = 0
        for _ in 0..<Self.roundLimit {
            let reports = epoll.wait(until: .distantPast)
            count += reports.count
            let hasSkippedSome = receive(reports, into: sink, &budget)
            // Behind a crowd of connections that are not read others may wait.
            guard hasSkippedSome, reports.count >= EpollSet.reportLimit, !budget.isSpent else { break }
        }
        return count
    }

    @discardableResult
    func receive(into sink: any MessageSink) -> Int {
        var budget = sink.receiveBudget
        return receive(into: sink, &budget)
    }

    /// - Returns: whether there is such a connection, and it had a packet.
    private func receiveFromSoleActive(into sink: any MessageSink, _ generation: UInt64, _ budget: inout ReceiveBudget)
        -> Bool
    {
        guard let member = state.withLock({ $0.soleActive.next() }) else { return false }
        if budget.grant(to: member.owner) > 0 {
            sink.beginExclusiveReceive(inGeneration: generation)
            let (count, hasMore, _) = member.receive(into: member.port?.object, limit: 1)
            budget.spend(count, by: member.owner)
            noteBusyRing(of: member)
            if hasMore { return true }
            sink.cancelExclusiveReceive()
        }
        state.withLock { $0.soleActive.didFindNothing() }
        return false
    }

    /// - Returns: whether some were not read because of what their processes take up.
    private func receive(_ reports: [EpollReport], into sink: any MessageSink, _ budget: inout ReceiveBudget) -> Bool {
        // The kernel names them in the same order each time: where places are few, the first would get them all.
        let pollCount = state.withLock { state in
            state.pollCount &+= 1
            return state.pollCount
        }
        if reports.contains(where: { $0.key == Self.listenerKey }) { acceptAll(for: sink) }
        var (hasSkippedSome, endedCount, soleActive) = (false, 0, SocketConnection?.none)
        for index in reports.indices {
            let report = reports[(index + pollCount % reports.count) % reports.count]
            guard let member = state.withLock({ $0.members[report.key] }) else { continue }
            let grant = budget.grant(to: member.owner)
            if grant == 0 {
                hasSkippedSome = true
                continue
            }
            let (count, hasMore) = receive(report, from: member, into: sink, limit: grant)
            budget.spend(count, by: member.owner)
            // The second one was none.
            if reports.count == 1, count == 2, !hasMore { soleActive = member }
            if member.receiver.isHeldBack.load(ordering: .acquiring) { hasSkippedSome = true }
            if member.isClosed, remove(report.key), member.port?.object === sink, !member.isOnlyObserving {
                endedCount += 1
            }
        }
        state.withLock { state in
            // One that is listened to no more is not kept.
            let isHere = soleActive.map { state.keys[ObjectIdentifier($0)] != nil } ?? false
            state.soleActive.didPoll(found: isHere ? soleActive : nil)
        }
        if endedCount > 0 {
            // One that has connected meanwhile is a sender: the port still has one then. Not for each that has ended:
            // so whoever connects and ends all the time would keep the port from everything else.
            acceptAll(for: sink)
            for _ in 0..<endedCount { sink.clientDidDisconnect() }
        }
        return hasSkippedSome
    }

    /// - Returns: as the connection does.
    private func receive(
        _ report: EpollReport, from member: SocketConnection, into sink: any MessageSink, limit: Int
    ) -> (count: Int, hasMore: Bool) {
        // There is room for what is overdue, or nobody who will read it.
        if !EpollEvents.arrival.isSuperset(of: report.events) { member.flush() }
        // A right's end never gets messages for a port, and the end of another port's connection has its own.
        let result = member.receive(into: member.port?.object, limit: limit, isReported: true)
        noteBusyRing(of: member)
        if !report.events.isDisjoint(with: .hangUpOrError), member.receiver.isHeldBack.load(ordering: .acquiring) {
            member.peerDidDisconnect()
            silence(member)
        }
        return (result.count, result.hasMore)
    }

    /// Listens to a connection no more.
    ///
    /// - Returns: false when that was so already.
    func remove(_ key: UInt64) -> Bool {
        let member = state.withLock { state in
            let member = state.members.removeValue(forKey: key)
            if let member { state.keys[ObjectIdentifier(member)] = nil }
            state.pausedInterests[key] = nil
            state.silenced.remove(key)
            state.busyRings.removeAll { $0 === member }
            if let member { state.soleActive.forget(member) }
            accounts.withLock { $0.disconnect(key) }
            return member
        }
        guard let member else { return false }
        epoll.remove(member.descriptor.rawValue)
        return true
    }

    /// Closes the listener and the connections. One over which the port still owes a reply lives until that is sent,
    /// but its client can send nothing more.
    func close() {
        var listener: Listener?  // closed without the lock
        let members = state.withLock { state in
            state.isClosed = true
            swap(&listener, &state.listener)
            state.soleActive = SoleActivePeer()
            defer { (state.members, state.keys, state.busyRings) = ([:], [:], []) }
            return state.members
        }
        listener = nil
        accounts.serve(nil)
        for member in members.values {
            epoll.remove(member.descriptor.rawValue)
            // One of another port goes on there.
            let isOthers = member.state.withLock { $0.listeners.contains { $0.object === self } }
            if member.port != nil, !isOthers { member.portDidEnd() }
        }
    }
}

// MARK: - Renewing

extension PortSockets {
    /// Listens with another socket in place of the one whose path has gone. The connections stay.
    ///
    /// - Parameters:
    ///   - path: the path that has gone. A port that listens elsewhere by now goes on doing so.
    ///   - listener: the other socket.
    /// - Returns: the address.
    /// - Throws: `invalidPort` when the sockets are closed; why the kernel cannot watch the other one.
    func replaceListener(at path: String, by listener: consuming Listener) throws(PortError) -> PortAddress {
        var offered: Listener? = consume listener
        var old: Listener?  // closed after the lock is free
        let result = state.withLock { (state) -> Result<PortAddress, PortError> in
            if state.isClosed { return .failure(PortError(.invalidPort)) }
            if let now = state.listener?.path, now != path { return .success(PortAddress(path: now)) }
            guard let made = offered.take() else { return .failure(PortError(.invalidPort)) }
            do throws(SystemError) {
                try epoll.add(made.descriptor.raw, .readable, key: Self.listenerKey)
            } catch {
                return .failure(PortError(error))
            }
            let address = PortAddress(path: made.path)
            old = state.listener.take()
            if let gone = old?.descriptor.raw { epoll.remove(gone) }
            state.listener = consume made
            return .success(address)
        }
        _ = consume old
        return try result.get()
    }
}

// MARK: - Accounts

// Back-pressure for each process. Which connections are paused is decided under the lock of the sockets, so that a
// connection is never paused after the room for it has come.
extension PortSockets {
    /// Counts a connection that gets rings, if it may, and makes what it needs.
    ///
    /// - Returns: what was made; nil when the process has enough rings, or there was nothing to make it of: then it is not counted.
    func withRings<Made>(for connection: SocketConnection, _ make: () -> Made?) -> Made? {
        let key = state.withLock { state -> UInt64? in
            guard let key = state.keys[ObjectIdentifier(connection)], accounts.withLock({ $0.reserveRings(key) })
            else { return nil }
            return key
        }
        guard let key else { return nil }
        let made = make()
        if made == nil { accounts.withLock { $0.releaseRings(key) } }
        return made
    }

    /// Reads again from connections of processes that are under their limits.
    ///
    /// - Parameter owner: of which process; nil for all.
    func resume(_ owner: PeerID? = nil) {
        let resumed = state.withLock { state in
            let members = accounts.withLock { $0.removeResumable(of: owner) }.compactMap { state.members[$0] }
            for member in members { member.receiver.isHeldBack.store(false, ordering: .releasing) }
            return members
        }
        for member in resumed { member.updateInterest() }
    }

    /// Whether no further message is read from the connection, because its process is over its limits; then it is
    /// paused.
    func holdBack(_ connection: SocketConnection) -> Bool {
        let isHeldBack = state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)], accounts.withLock({ $0.pause(key) }) else {
                return false
            }
            connection.receiver.isHeldBack.store(true, ordering: .releasing)
            return true
        }
        if isHeldBack { connection.updateInterest() }
        return isHeldBack
    }

    /// Does not look at a paused connection whose peer is gone, which the kernel would report for ever, until it is
    /// read again.
    func silence(_ connection: SocketConnection) {
        state.withLock { state in
            guard connection.receiver.isHeldBack.load(ordering: .acquiring),
                let key = state.keys[ObjectIdentifier(connection)]
            else { return }
            epoll.remove(connection.descriptor.rawValue)
            state.silenced.insert(key)
            // Whoever paused it has perhaps not said so yet: nothing is waited for until it is to be read again.
            state.pausedInterests[key] = []
        }
    }
}
