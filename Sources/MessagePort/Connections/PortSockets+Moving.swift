// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// The sockets of a port that moves to another process. While it is frozen, nothing is accepted and nothing is received:
// what comes stays in the sockets, for the next owner, or for this one if the port stays.
extension PortSockets {
    /// From now on nothing is accepted or received, until `thaw`. No thread is doing so when this returns.
    ///
    /// - Returns: false when the port has ended, or is frozen already.
    func freeze() -> Bool {
        let isFirst = accepting.withLock { _ in
            state.withLock { state in
                guard state.phase == .open || state.phase == .listenerPaused else { return false }
                state.phase = .frozen
                // Nothing is reported again and again meanwhile, not even the end of a peer.
                if let listener = state.listener?.descriptor.raw {
                    try? epoll.modify(listener, .edgeTriggered, key: Self.listenerKey)
                }
                state.soleActive = SoleActivePeer()
                return true
            }
        }
        if !isFirst { return false }
        for (key, member) in ownMembers {
            member.freeze()
            state.withLock { state in
                guard state.members[key] != nil, !state.unwatched.contains(key) else { return }
                try? epoll.modify(member.descriptor.rawValue, .edgeTriggered, key: key)
            }
        }
        return true
    }

    /// The connections of the port's own clients, in the order in which they came.
    private var ownMembers: [(key: UInt64, value: SocketConnection)] {
        state.withLock { $0.members }.filter { $0.value.isPortsEnd && !$0.value.hasListener(self) }
            .sorted { $0.key < $1.key }
    }

    /// The connections of clients, in the order in which they came, without those over which only room is asked for,
    /// or that the port move.
    var clients: [SocketConnection] {
        ownMembers.map(\.value).filter { !$0.isClosed && !$0.isQuestion && !$0.isAskingForMove }
    }

    /// Whether the connection of a sender is closed, and not removed yet.
    var hasEndedClient: Bool { ownMembers.contains { $0.value.isClosed && !$0.value.isOnlyObserving } }

    /// Whether a client may ask under this number because it had it at another process.
    func isFormer(_ key: UInt64) -> Bool {
        ownMembers.contains { $0.value.receiver.credit.formerKey.load(ordering: .relaxed) == key }
    }

    /// The port stays: accepts and receives again.
    func thaw() {
        let members = state.withLock { state -> [SocketConnection]? in
            if state.phase != .frozen { return nil }
            state.phase = .open
            if let listener = state.listener?.descriptor.raw {
                try? epoll.modify(listener, .readable, key: Self.listenerKey)
            }
            // Also those that became members while it was frozen.
            let frozen = state.members.filter { $0.value.isFrozen }.sorted { $0.key < $1.key }
            for (key, member) in frozen {
                member.thaw()
                if state.unwatched.contains(key) { continue }
                let interest = member.interest
                try? epoll.modify(member.descriptor.rawValue, interest, key: key)
                state.pausedInterests[key] = interest == .arrival ? nil : interest
            }
            return frozen.map(\.value)
        }
        guard let members else { return }
        background.object?.acceptLater()
        for member in members {
            member.renewRings()
            updateInterest(in: member)  // of one that is not watched, too
            background.object?.awaitQuery(of: member)
        }
    }

    /// Waits until no thread is receiving from a client that was receiving before. Not for such a thread.
    func waitForReceivers() { for client in clients { client.receiver.state.withLock { _ in } } }

    /// A connection of another port's, over which a reply is awaited here, goes to another process with that port.
    func drop(_ connection: SocketConnection) {
        if state.withLock({ $0.isMember(connection) }) { _ = remove(connection.number) }
    }

    /// The descriptor of the listener, and of the lock of its path. Nil when there is no listener, or no lock, because the
    /// socket is a supervisor's.
    func listenerToMove() throws(PortError) -> [SharedDescriptor]? {
        let found = state.withLock { state -> Result<[SharedDescriptor]?, PortError> in
            guard let raw = state.listener?.descriptor.raw else { return .success(nil) }
            do throws(PortError) {
                guard let lock = try state.listener?.duplicateLock() else { return .success(nil) }
                return .success([SharedDescriptor(try PortError.converting(sysDuplicate(raw))), lock])
            } catch {
                return .failure(error)
            }
        }
        return try found.get()
    }

    /// The port is another process's: closes this process's descriptors, and the clients notice nothing.
    func leave(moved: [SocketConnection], replacedBy other: CInt) {
        var listener: Listener?  // closed without the lock
        var watch: UInt64?
        var readEnds: [UInt64: PipeEnd] = [:]
        let members = accepting.withLock { _ in
            state.withLock { state in
                state.phase = .closed
                state.listener?.leave()
                swap(&listener, &state.listener)
                swap(&watch, &state.backgroundWatch)
                swap(&readEnds, &state.readEnds)
                defer { (state.members, state.busyRings) = ([:], []) }
                return state.members
            }
        }
        BackgroundAcceptor.endWatch(watch)
        // The next owner has them open, too: closing them here would not end the watch.
        for end in readEnds.values { epoll.remove(end.descriptor.rawValue) }
        background.withObject { $0.end() }
        quotas.whenBelowLimits(nil)
        let leaving = Set(moved.map { ObjectIdentifier($0) })
        for (_, member) in members.sorted(by: { $0.key < $1.key }) {
            epoll.remove(member.descriptor.rawValue)
            if leaving.contains(ObjectIdentifier(member)) {
                member.leave(replacedBy: other)
            } else if member.isPortsEnd, !member.hasListener(self) {
                if member.isAskingForMove { member.answerHandOver(.done) }
                // Its sender asks the next owner, or finds that it has waited for nothing.
                member.close(PortError(.peerDied))
            } else if let loop = try? IOThread.loop(), let source = (try? member.replySource()) ?? nil {
                // A reply may come that this process passes on.
                try? loop.addOrThrow(source, to: .default)
            }
        }
        _ = consume listener
    }
}
