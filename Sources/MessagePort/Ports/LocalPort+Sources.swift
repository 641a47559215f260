// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    /// From now on a message signals the source, and its loop watches the port's sockets.
    ///
    /// - Returns: false when the port is dead.
    func attach(_ source: RunLoopSource) throws(PortError) -> Bool {
        try checkProcess()
        let (isDead, sockets) = state.withLock { state in
            if !state.mailbox.isDead { state.sources.append(source) }
            return (state.mailbox.isDead, state.coldState.sockets)
        }
        if isDead { return false }
        if let sockets {
            do throws(PortError) {
                try watch(sockets, by: source)
            } catch {
                detach(source)
                throw error
            }
        }
        otherListenerWillBegin()  // the source; earlier receivers stay
        source.ring()
        return true
    }

    /// As `attach`, and adds the source to a loop.
    ///
    /// - Throws: `invalidPort` when the port is dead; then the source is in no loop. Why the loop cannot watch it; then
    ///   it is invalid.
    func attach(_ source: RunLoopSource, to loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) {
        guard try attach(source) else { throw PortError(.invalidPort).at(label) }
        do throws(PortError) {
            try loop.addOrThrow(source, to: mode)
        } catch {
            detach(source)
            source.invalidate()
            throw error
        }
    }

    func detach(_ source: RunLoopSource) {
        if isInherited { return }
        state.withLock { $0.sources.remove(source) }
    }

    /// The port's sockets, made when they are first needed: then every attached source watches them.
    func openSockets() throws(PortError) -> PortSockets {
        try checkProcess()
        if let sockets = state.withLock({ $0.coldState.sockets }) { return sockets }
        let sockets = try Self.opening.withLock { (_) throws(PortError) in try makeSockets() }
        watchForWaitingTasks()
        return sockets
    }

    /// Locked while a port's sockets are made, so that no thread uses sockets that are discarded again.
    private static let opening = Mutex(())

    /// Makes the sockets, and has every attached source and the doorbell watch them before other threads see them.
    private func makeSockets() throws(PortError) -> PortSockets {
        if let sockets = state.withLock({ $0.coldState.sockets }) { return sockets }
        let made = try PortSockets()
        var watching: [RunLoopSource] = []
        do throws(PortError) {
            while let sources = try publish(made, watchedBy: watching) {
                for source in sources {
                    try watch(made, by: source)
                    watching.append(source)
                }
            }
        } catch {
            for source in watching { try? source.watch(pollable: nil) }
            throw error
        }
        if isDead { throw PortError(.invalidPort).at(label) }
        return made
    }

    private func watch(_ sockets: PortSockets, by source: RunLoopSource) throws(PortError) {
        try PortError.converting(source.watch(pollable: sockets.rawValue))
    }

    /// Makes the sockets the port's own, if every attached source watches them and the doorbell can.
    ///
    /// - Returns: the sources that do not watch them yet; nil when none is left, or the port is dead.
    private func publish(_ sockets: PortSockets, watchedBy watching: [RunLoopSource]) throws(PortError)
        -> [RunLoopSource]?
    {
        try state.withLock { (state) throws(PortError) in
            if state.mailbox.isDead { return nil }
            let others = state.sources.all.filter { source in !watching.contains { $0 === source } }
            guard others.isEmpty else { return others }
            try state.coldState.doorbell?.watch(sockets)
            state.coldState.sockets = sockets
            state.mailbox.revokeLease()  // from now on the sockets are polled between messages
            sockets.quotas.whenBelowLimits { sockets.resume($0) }
            let (rules, queueLimit) = (state.coldState.rules ?? .standard, state.sharedQueueLimit)
            sockets.quotas.withLock { ($0.limits, $0.queueLimit) = (rules.limits, queueLimit) }
            return nil
        }
    }

    /// Gives the port an address, if it has none: a listening socket with an unguessable path.
    package func address() throws(PortError) -> PortAddress {
        try checkProcess()
        if let address = state.withLock({ $0.liveAddress }) { return address }
        if let successor { return try successor.destination.address() }
        if isDead { throw PortError(.invalidPort).at(label) }
        return try address(in: .user())
    }

    /// Gives the port an address in the given directory; an existing one stays.
    package func address(in directory: PortDirectory) throws(PortError) -> PortAddress {
        try checkProcess()
        if let address = state.withLock({ $0.liveAddress }) { return address }
        let sockets = try openSockets()
        let address = try sockets.listen(in: directory, for: self)
        try publish(address, of: sockets)
        return address
    }

    /// Whether the path of the port's address leads to its socket: it was not removed or replaced. A path that a
    /// supervisor made may lead to the supervisor's new socket.
    package func isReachable(at address: PortAddress) throws(SystemError) -> Bool {
        let made = state.withLock { $0.coldState.sockets }?.state.withLock { $0.listener?.made }
        guard let there = try sysStatus(atPath: address.path) else { return false }
        return made?.isSameFile(as: there) ?? true
    }

    /// Replaces an address whose path is gone. Rights in transit under the old one are still rights to this port when
    /// they come back to this process.
    package func renewAddress(_ old: PortAddress, in directory: PortDirectory) throws(PortError) -> PortAddress {
        let sockets = try openSockets()
        let listener = try directory.endpoints().makeListener(backlog: Tuning.listenBacklog)
        receiveFromSockets()  // accepts clients that wait at the old one
        let address = try sockets.listen(on: listener, inPlaceOf: old.path, for: self).address
        try publish(address, of: sockets)
        return address
    }

    /// Gives the port an inherited address, with its socket.
    ///
    /// - Returns: nil when the port already has an address; then the socket is closed.
    package func listen(on listener: consuming Listener) throws(PortError) -> PortAddress? {
        try checkProcess()
        if state.withLock({ $0.liveAddress }) != nil { return nil }
        ReservedDescriptor.shared.reserve()
        let sockets = try openSockets()
        let (address, isTaken) = try sockets.listen(on: listener, for: self)
        guard isTaken else { return nil }
        try publish(address, of: sockets)
        return address
    }

    func publish(_ address: PortAddress, of sockets: PortSockets) throws(PortError) {
        // A process that sees the address finds the port under it.
        RightsTable.shared.publish(self, at: address)
        let isDead = state.withLock { state in
            if state.mailbox.isDead { return true }
            if let old = state.coldState.address, old != address { state.coldState.oldAddresses.append(old) }
            state.coldState.address = address
            return false
        }
        if isDead {
            RightsTable.shared.forget(address)
            sockets.close()
            throw PortError(.invalidPort).at(label)
        }
    }

    package var connectionCount: Int {
        state.withLock { $0.coldState.sockets }?.memberCount ?? 0
    }
}

// MARK: - Listening

extension LocalPort {
    var onlySource: RunLoopSource? {
        if readsAhead || receivesElsewhere.load(ordering: .sequentiallyConsistent) { return nil }
        return state.withLock { state in
            let isSoleListener =
                !state.mailbox.isDead && state.coldState.doorbell == nil && state.coldState.taskReceiver == nil
            return isSoleListener ? state.sources.only : nil
        }
    }

    package var isReceivedElsewhere: Bool { receivesElsewhere.load(ordering: .relaxed) }

    func otherListenerWillBegin() {
        if isInherited { return }
        sockets?.endPollingWhileHandling()
    }

    /// Messages will be received other than by the port's sources.
    func willReceiveElsewhere() {
        if receivesElsewhere.load(ordering: .relaxed) { return }
        receivesElsewhere.store(true, ordering: .sequentiallyConsistent)
        otherListenerWillBegin()
    }

    /// Calls `body` with each place where a spinning loop polls for messages of other processes.
    func visitPollables(_ body: (any BusyPollable) -> Void) {
        if isInherited { return }
        for connection in sockets?.state.withLock({ $0.busyRings }) ?? [] { body(connection) }
    }
}

// MARK: - Statistics

extension LocalPort {
    /// What the port has counted; nothing in a forked child.
    var statistics: PortStatistics {
        var statistics = PortStatistics()
        if isInherited { return statistics }
        let sources = state.withLock { state in
            statistics.messageCount = state.mailbox.messageCount
            statistics.byteCount = state.mailbox.byteCount
            statistics.droppedMessageCount = state.mailbox.droppedCount
            statistics.queueCount = state.mailbox.depth()
            statistics.queueLimit = state.mailbox.limit
            statistics.queueHighWaterMark = state.mailbox.highWater
            statistics.clientCount = max(0, Int(state.senders.clientCount))
            return state.sources
        }
        for loop in Set(sources.all.flatMap(\.loops)) { statistics.waits.add(loop.waitCounts) }
        return statistics
    }
}
