// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

// What receives from a connection, and when it may; what a packet, or the end of them, does to the connection.
extension SocketConnection {
    /// Whether nothing new is read, because the peer's process is over its limits.
    var isThrottled: Bool { receiver.isThrottled.load(ordering: .acquiring) }

    /// At the port's end called under the lock of the port's sockets.
    func setThrottled(_ isThrottled: Bool) { receiver.isThrottled.store(isThrottled, ordering: .releasing) }

    /// Whether replies wait for room.
    var isAwaitingRoom: Bool { sender.isAwaitingRoom }

    /// Whether nothing more is read from the peer now.
    var isPaused: Bool { isThrottled || isAwaitingRoom }

    /// The events that a port which receives from the connection waits for.
    var interest: EpollEvents {
        guard isPortsEnd else { return isThrottled ? [] : .arrival }
        return sender.backlog.withLock { backlog in
            if !backlog.isPausing {
                if isThrottled { return [] }
                // A socket with room is reported until data without a pending wake-up was read.
                return receiver.hasUnsignalledData.load(ordering: .acquiring)
                    ? [.readable, .peerClosed, .writable] : .arrival
            }
            // The end of the peer is reported all the same.
            return backlog.isWatched ? [] : .writable
        }
    }

    /// Other sockets receive from the connection, because their port awaits a reply over it.
    func addListener(_ sockets: PortSockets) {
        state.withLock { state in
            state.coldState.listeners.removeAll { $0.object == nil || $0.object === sockets }
            state.coldState.listeners.append(WeakReference(sockets))
        }
        endPollingWhileHandlingSoon()
    }

    func hasListener(_ sockets: PortSockets) -> Bool {
        state.withLock { $0.coldState.listeners.contains { $0.object === sockets } }
    }

    /// Updates what receives from the connection, when it was paused or resumed.
    func updateInterest() {
        sink?.sockets?.updateInterest(in: self)
        let (listeners, source) = state.withLock { ($0.coldState.listeners, $0.source) }
        for listener in listeners { listener.object?.updateInterest(in: self) }
        if let source, !isPaused { source.watchSoon(pollable: descriptor.rawValue) }
        signalSource()
    }

    /// The peer is gone, though unread data may be left: it no longer awaits replies.
    func peerDidDisconnect() {
        sharedMemory.object?.lender.endLending()
        let handlers = state.withLock { $0.requests.abandonAll() }
        for notify in handlers { notify() }
        Callouts.drop(handlers)
    }

    /// Keeps the source that receives replies from watching a paused connection, which may stay readable.
    func pauseSource() {
        guard isPaused, let source = knownReplySource else { return }
        try? source.watch(pollable: nil)
        if !isPaused { source.watchSoon(pollable: descriptor.rawValue) }
    }
}

extension EpollEvents {
    /// Something to read, or the end.
    static let arrival: EpollEvents = [.readable, .peerClosed]
}

// MARK: Receiving

extension SocketConnection: IncomingChannelObserver {
    /// Receives what has arrived. Never waits. For the parameters see `PacketReceiver.receive`.
    @discardableResult
    func receive(
        into sink: (any MessageSink)?, limit: Int = Tuning.packetBudget, endsPolling: Bool = false,
        depth: PollDepth = .quick
    ) -> (count: Int, hasMore: Bool, isWithinMessage: Bool) {
        receiver.receive(into: sink, limit: limit, endsPolling: endsPolling, depth: depth, from: self)
    }

    /// Receives what has arrived, unless a thread is receiving.
    ///
    /// - Returns: whether there may be more.
    @discardableResult
    func receiveUnlessReceiving() -> Bool { receiver.receiveUnlessReceiving(from: self) }

    func peerDidOpenRing() { sender.channel.path.withLock { $0.peerDidOpen() } }

    func peerDidLeaveRing() { receiver.polledPeriod.store(0, ordering: .sequentiallyConsistent) }

    func closeObserver() -> any CloseObserver {
        PendingCloses(receiver.closingCount.object(orSet: PendingCloseCount()), of: owner, quotas(of: sink))
    }

    /// Whether nothing is read from the ring any more.
    var hasEndedReading: Bool { state.withLock { $0.life.failure != nil || isPortsEnd && $0.life.hasLostOwnSide } }

    /// All that the peer sent before it ended has been read.
    func peerDidEnd() {
        // The end of a port ends only what it receives; replies that it owes are still sent.
        if !(isPortsEnd && state.withLock { $0.life.hasLostOwnSide }) { close(PortError(.peerDied)) }
    }

    /// The peer is gone: its last packet may give the reason, for example a refusal.
    func peerDidClose() -> PortError {
        receiveUnlessReceiving()
        otherPortDidEnd()
        let failure = state.withLock { $0.life.failure }
        guard var failure, failure.code != .peerDied, failure.code != .deadName else { return PortError(.deadName) }
        failure.knownDelivery = nil  // what is known of other messages
        return failure
    }

    /// Ends the connection because of what the peer sent, and sends it the reason.
    ///
    /// - Returns: false: there is nothing more to receive.
    func refuse(_ code: PortError.Code) -> Bool {
        Self.sendRefusal(code, to: descriptor)
        close(PortError(code))
        return false
    }

    /// Sends a refusal to a peer, if there is room.
    static func sendRefusal(_ code: PortError.Code, to socket: SharedDescriptor) {
        let header = PacketHeader(kind: .refused, messageID: Int32(code.rawValue))
        _ = try? sysSendPacket(socket.rawValue, head: header.words, body: [], descriptors: [])
    }
}
