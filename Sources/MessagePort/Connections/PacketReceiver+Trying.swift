// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Reads that do not wait for a thread that is receiving over the connection.

import PortSystem
import Synchronization

extension PacketReceiver {
    /// Receives what has arrived, unless a thread is receiving: another one, or this one further up its stack, where an
    /// unwanted message makes this end answer that it is dropped.
    ///
    /// - Returns: whether there may be more.
    func receiveUnlessReceiving(from connection: SocketConnection) -> Bool {
        if connection.isInherited { return false }
        let sink = connection.sink
        Callouts.hold()
        let result = state.withLockIfAvailable { state in
            let result = receivePackets(
                into: sink, &state, limit: Tuning.packetBudget, depth: .thorough, from: connection)
            return (hasMore: result.hasMore, mustUpdate: noteUnsignalledData(state.channel, at: connection))
        }
        Callouts.release()
        if result?.mustUpdate == true { connection.updateInterest() }
        dropUnreadIfPortEnded(from: connection)
        return result?.hasMore ?? false
    }

    /// Receives the next packet, if it is a query, unless a thread is receiving: also while the port's queue is full,
    /// because a query takes no slot. Notices the end of a peer that has only asked.
    ///
    /// - Returns: whether another may come: not when the peer has sent something else, or uses a ring, or has to read
    ///   answers first (then `resumeReading` follows).
    /// - Throws: when there is no memory for the packet.
    func receiveQuery(from connection: SocketConnection) throws(SystemError) -> Bool {
        let sink = connection.sink
        Callouts.hold()
        defer { Callouts.release() }
        let mayHaveMore = try state.withLockIfAvailable { (state) throws(SystemError) in
            if connection.isClosed || connection.isAwaitingRoom || state.channel.path.isOnRing || isNowFrozen
                || !state.channel.unread.isEmpty
            {
                return false
            }
            switch try sysPeekPacket(connection.descriptor.rawValue) {
            case .wouldBlock: return true
            case .packet(let first): if PacketHeader.kind(ofPacketWith: first)?.isQuery != true { return false }
            case .peerClosed: if !connection.isOnlyObserving { return false }
            }
            _ = receivePacket(&state, sink, depth: .thorough, from: connection)
            return !connection.isClosed
        }
        if credit.askedKey != nil { connection.answerQuestion() }
        dropUnreadIfPortEnded(from: connection)
        return mayHaveMore ?? true
    }

    /// Receives the probes that come next, unless a thread is receiving: also while the port's queue is full, because
    /// they take no slot.
    ///
    /// - Parameters:
    ///   - connection: this receiver's.
    ///   - exceedingLimit: whether messages that come before them, the requests that they are about, may exceed the
    ///     queue's limit: as many as there are connections.
    func receiveProbes(from connection: SocketConnection, exceedingLimit: Bool) {
        if connection.isInherited { return }
        let sink = connection.sink
        Callouts.hold()
        defer { Callouts.release() }
        state.withLockIfAvailable { state in
            for _ in 0..<Tuning.packetBudget {
                if isNowFrozen || connection.isClosed || connection.isAwaitingRoom || state.channel.assembly.isBegun {
                    return
                }
                // The number of a connection may be ahead of the first one.
                let next = state.channel.nextKind(on: connection)
                guard next == .probe || next == .credit || exceedingLimit && mayExceedLimit(of: sink, connection),
                    receivePacket(&state, sink, depth: .thorough, from: connection)
                else { return }
            }
        }
        dropUnreadIfPortEnded(from: connection)
    }

    private func mayExceedLimit(of sink: (any MessageSink)?, _ connection: SocketConnection) -> Bool {
        guard connection.isPortsEnd, let sink, let sockets = sink.sockets else { return false }
        return !sockets.quotas.isOver(connection.owner) && sink.isQueueShorter(thanLimitAnd: sockets.memberCount)
    }

    private var isNowFrozen: Bool { isFrozen.load(ordering: .sequentiallyConsistent) }

    /// The port may have ended while its connection was being read, when its end found the lock taken.
    func dropUnreadIfPortEnded(from connection: SocketConnection) {
        if hasPortEnded.load(ordering: .sequentiallyConsistent) { dropUnread(from: connection) }
    }

    /// Receives what the peer sent to a dead port, and drops it: senders that wait for room, or for a reply, learn of
    /// the end.
    ///
    /// Does nothing while packets are being received: that may be further up this thread's stack, where the last
    /// reference to a port may be released; the receiving thread does it afterwards.
    func dropUnread(from connection: SocketConnection) {
        if connection.isInherited || isNowFrozen { return }
        Callouts.hold()
        defer { Callouts.release() }
        state.withLockIfAvailable { state in
            // The rest is closed with the socket.
            while !isAtCloseLimit, receivePacket(&state, nil, depth: .thorough, from: connection) {}
        }
    }
}

extension IncomingChannel {
    /// The kind of the next packet; nil when there is none, or it is not known.
    fileprivate mutating func nextKind(on connection: SocketConnection) -> PacketKind? {
        if let first = unread.first { return first.header.kind }
        if !path.isOnRing { return (try? sysPeekPacket(connection.descriptor.rawValue))?.kind }
        return path.consumer?.peekHead().flatMap { PacketHeader.kind(ofPacketWith: $0) }
    }
}
