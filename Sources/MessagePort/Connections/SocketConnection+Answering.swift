// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A reply at the port's end never waits for its reader. What finds no room is overdue, and as long as that is so nothing
// more is read from the peer: who does not read its replies gets no further request handled, and keeps nobody else waiting.

import PortSystem
import RunLoopCore
import Synchronization

extension SocketConnection {
    /// Sends a reply, now as far as there is room, and the rest when there is. Never waits. The request is settled once the
    /// whole reply has been sent.
    ///
    /// - Parameters:
    ///   - message: the reply.
    ///   - token: the token that came with the request.
    /// - Throws: ``PortError`` when it passes a limit, the kernel failed, or nobody will read it. The request is not settled
    ///   then.
    func reply(_ message: MachMessage, answering token: UInt64) throws(PortError) {
        if isClosed { throw PortError(.deadName) }
        let encoded = try OutgoingMessage(message)
        let asks = try expectReply(for: message.replyTarget)
        var transmission = Transmission(encoded, asks: asks, answers: token)
        do throws(PortError) {
            try sendOrOwe(&transmission, settling: token)
        } catch {
            forget(token: asks)
            throw error
        }
        if asks != 0 { didSend(token: asks) }
    }

    private func sendOrOwe(_ message: inout Transmission, settling token: UInt64) throws(PortError) {
        // At the right's end the turn is for those who wait; there the whole reply is owed.
        guard port != nil, turn.takeIfFree() else {
            guard oweIfAllowed(message.rest(settling: token)) else { return try failUnread() }
            return sendOverdue()
        }
        var outcome = Result { () throws(PortError) in try proceed(&message) }
        var isAllowed = true
        // What cannot be sent now is what lies before it, which is tried again: this one waits behind that.
        if case .failure(let failure) = outcome, failure.code != .deadName, !message.isBegun, !isClosed,
            overdue.withLock({ !$0.isEmpty })
        {
            outcome = .success(false)
        }
        switch outcome {
        case .failure: abort(message)
        case .success(true): break
        case .success(false):
            // Before the turn is given: pieces of one message follow each other.
            let isBegun = message.isBegun
            let rest = message.rest(settling: token)
            if isBegun { overdue.withLock { $0.prepend(rest) } } else { isAllowed = oweIfAllowed(rest) }
        }
        turn.give()
        if !isAllowed { try failUnread() }
        sendOverdue()
        if try outcome.get() { didSettleReply(to: token) }
    }

    private func failUnread() throws(PortError) {
        endBecauseUnread()
        throw PortError(.deadName)
    }
}

extension SocketConnection {
    /// Whether replies wait for room.
    var isAwaitingRoom: Bool { port != nil && !overdue.isQuiet && overdue.withLock { $0.isPausing } }

    /// Whether nothing more is read from the peer now.
    var isPaused: Bool { isHeldBack.load(ordering: .acquiring) || isAwaitingRoom }

    /// What a port that listens to the connection waits for.
    var interest: EpollEvents {
        guard port != nil else { return isHeldBack.load(ordering: .acquiring) ? [] : .arrival }
        return overdue.withLock { overdue in
            if !overdue.isPausing {
                if isHeldBack.load(ordering: .acquiring) { return [] }
                // A socket with room is reported until what is untold was read.
                return isUntold.load(ordering: .acquiring) ? [.readable, .peerClosed, .writable] : .arrival
            }
            // That the peer is gone is told all the same.
            return overdue.isWatched ? [] : .writable
        }
    }

    /// Whoever listens to the connection learns that it is paused, or is not any more.
    func updateInterest() {
        port?.object?.sockets?.updateInterest(in: self)
        let (listeners, source) = state.withLock { ($0.listeners, $0.source) }
        for listener in listeners { listener.object?.updateInterest(in: self) }
        if let source, !isPaused { source.watchSoon(pollable: descriptor.rawValue) }
        ringSource()
    }

    /// The peer is gone, though there may still be something to read from it: it does not wait for replies any more.
    func peerDidGo() {
        let watches = state.withLock { state in
            state.abandoned.formUnion(state.owed)
            defer { state.abandonWatches = [:] }
            return state.abandonWatches
        }
        for tell in watches.values.joined() { tell() }
    }

    /// Has the source that receives replies not look at a paused connection, which may stay readable.
    func pauseSource() {
        guard isPaused, let source = state.withLock({ $0.source }) else { return }
        try? source.watch(pollable: nil)
        if !isPaused { source.watchSoon(pollable: descriptor.rawValue) }
    }
}

extension EpollEvents {
    /// Something to read, or the end.
    static let arrival: EpollEvents = [.readable, .peerClosed]
}

extension Transmission {
    /// The packets that have not been sent, and now will be by others.
    ///
    /// - Parameter token: what is settled with the last of them.
    /// - Returns: the packets, in order.
    mutating func rest(settling token: UInt64) -> [SocketConnection.BacklogPacket] {
        var packets: [SocketConnection.BacklogPacket] = []
        while !isDone {
            let packet = next()
            advance(by: packet.payloadSize)
            packets.append(.init(packet: packet, settles: isDone ? token : nil))
        }
        return packets
    }
}
