// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Back-pressure for each process. Which connections are paused is decided under the lock of the sockets, so that a
// connection is never paused after the room for it has come.

import PortSystem
import Synchronization

/// What a message, or an unread reply, takes up in its peer's account until the object goes.
final class PeerCharge: Sendable {
    private let sockets: Weak<PortSockets>  // immutable
    private let process: Int32  // immutable
    private let bytes: Int  // immutable
    private let descriptors: Int  // immutable

    /// For an account that has taken it already.
    fileprivate init(_ sockets: PortSockets, _ process: Int32, bytes: Int, descriptors: Int) {
        self.sockets = Weak(object: sockets)
        self.process = process
        self.bytes = bytes
        self.descriptors = descriptors
    }

    deinit {
        sockets.object?.giveBack(bytes: bytes, descriptors: descriptors, by: process)
    }
}

extension PortSockets {
    /// Charges a process for a message that begins.
    ///
    /// - Returns: the charge, and the most bytes that its message may have; no charge for a larger one, which is not kept.
    func charge(_ process: Int32, for header: PacketHeader, descriptors: Int) -> (charge: PeerCharge?, limit: Int) {
        let (limit, isTaken) = accounts.withLock { accounts in
            let limit = accounts.limits.messageBytes
            if header.totalLength > UInt64(limit) { return (limit, false) }
            accounts.take(bytes: Int(header.totalLength), descriptors: descriptors, by: process)
            return (limit, true)
        }
        guard isTaken else { return (nil, limit) }
        return (PeerCharge(self, process, bytes: Int(header.totalLength), descriptors: descriptors), limit)
    }

    /// Charges a process for replies that it does not read.
    func charge(_ process: Int32, forUnread bytes: Int) -> PeerCharge {
        accounts.withLock { $0.take(bytes: bytes, descriptors: 0, by: process) }
        return PeerCharge(self, process, bytes: bytes, descriptors: 0)
    }

    /// Counts a connection that gets rings.
    ///
    /// - Returns: whether it may.
    func takeRings(for connection: SocketConnection) -> Bool {
        state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)] else { return false }
            return accounts.withLock { $0.takeRings(key) }
        }
    }

    fileprivate func giveBack(bytes: Int, descriptors: Int, by process: Int32) {
        if isInherited { return }
        let mayResume = accounts.withLock { $0.giveBack(bytes: bytes, descriptors: descriptors, by: process) }
        if mayResume { resume() }
    }

    /// Reads again from connections of processes that are under their limits.
    func resume() {
        let resumed = state.withLock { state in
            let members = accounts.withLock { $0.takeResumable() }.compactMap { state.members[$0] }
            for member in members { member.isHeldBack.store(false, ordering: .releasing) }
            return members
        }
        for member in resumed { member.updateInterest() }
    }

    /// Whether no further message is read from the connection, because its process is over its limits; then it is paused.
    func holdBack(_ connection: SocketConnection) -> Bool {
        guard accounts.withLock({ $0.isOver(connection.peer.processID) }) else { return false }
        let isHeldBack = state.withLock { state in
            guard let key = state.keys[ObjectIdentifier(connection)], accounts.withLock({ $0.pause(key) }) else {
                return false
            }
            connection.isHeldBack.store(true, ordering: .releasing)
            return true
        }
        if isHeldBack { connection.updateInterest() }
        return isHeldBack
    }

    /// Does not look at a paused connection whose peer is gone, which the kernel would report for ever, until it is read
    /// again.
    func silence(_ connection: SocketConnection) {
        state.withLock { state in
            guard connection.isHeldBack.load(ordering: .acquiring),
                let key = state.keys[ObjectIdentifier(connection)]
            else { return }
            epoll.remove(connection.descriptor.rawValue)
            state.silenced.insert(key)
        }
    }
}
