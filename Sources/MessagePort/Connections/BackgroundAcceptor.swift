// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// What the I/O thread does for a port whose own threads are busy: it accepts and refuses clients, and answers queries, so
/// that a port can be inspected while its handler runs. It calls no code of the program, and reads no message for its own
/// sake. A thread that polls the port's sockets does the same.
final class BackgroundAcceptor: Sendable {
    /// What it works for, until the port ends.
    private let owner: ReleasableReference<(sockets: PortSockets, sink: any MessageSink)>  // immutable
    /// How many clients it has accepted since a thread last polled. The others wait in the listen backlog, where they
    /// need no descriptor.
    private let acceptedCount = Atomic<Int>(0)

    init(_ sockets: PortSockets, for sink: any MessageSink) { owner = ReleasableReference((sockets, sink)) }

    /// Has the I/O thread accept what connects to a listener.
    ///
    /// - Returns: the key of the watch; nil where no I/O thread can be started: then clients wait for a thread that polls.
    /// - Throws: why the kernel cannot watch it.
    func watch(_ listener: CInt, in watches: DescriptorWatches?) throws(SystemError) -> UInt64? {
        // Edges: what a thread that polls accepts first is reported once, not until it is accepted.
        try watches?.add(listener, [.readable, .edgeTriggered], once: false) { [weak self] in self?.accept() }
    }

    static func endWatch(_ key: UInt64?) {
        if let key { try? IOThread.arrivals().remove(key) }
    }

    /// The port has ended.
    func end() { owner.release() }

    /// A thread polls the sockets: it accepts some of those that still wait, and the I/O thread as many again.
    func didPoll() {
        let count = acceptedCount.load(ordering: .relaxed)
        if count == 0 { return }
        acceptedCount.store(0, ordering: .relaxed)
        if count >= Tuning.backgroundClients { acceptLater() }
    }

    /// Has the I/O thread accept clients that no further edge may report.
    func acceptLater() { IOThread.startedLoop?.perform { self.accept() } }

    /// Accepts clients; called on the I/O thread.
    func accept() {
        guard let (sockets, sink) = owner.object, !sockets.isInherited, sockets.isWatchedInBackground else { return }
        var clients: [SocketConnection] = []
        var (attempts, mayHaveMore) = (0, true)
        while mayHaveMore, attempts < Tuning.backgroundClients, mayAccept {
            var client: SocketConnection?
            mayHaveMore = sockets.acceptOne(for: sink, inBackground: true, &client)
            attempts += 1
            if let client {
                acceptedCount.add(1, ordering: .relaxed)
                clients.append(client)
            }
        }
        // After all are members: what a later one has sent counts in the answer to an earlier one.
        var hasReceived = false
        for client in clients { answer(client, sockets, sink, &hasReceived) }
        if mayHaveMore, mayAccept { acceptLater() }
    }

    private var mayAccept: Bool { acceptedCount.load(ordering: .relaxed) < Tuning.backgroundClients }

    /// A client asks, and sends no messages: another may be accepted.
    private func didAnswerClient() {
        let count = acceptedCount.load(ordering: .relaxed)
        guard count > 0 else { return }
        // A thread that polls may have reset it.
        _ = acceptedCount.compareExchange(expected: count, desired: count - 1, ordering: .relaxed)
        if count >= Tuning.backgroundClients { acceptLater() }
    }

    /// Answers the next packet of a client that has sent no message, if it is a query, and notices its end.
    func awaitQuery(of client: SocketConnection) {
        if client.isClosed || client.hasSentMessages { return }
        // The connection is retained until then, or until it ends, which is reported too. It may be watched already.
        let key = try? IOThread.arrivals().add(client.descriptor.rawValue, .arrival, once: true) { [weak self] in
            guard let self, let (sockets, sink) = owner.object else { return }
            var hasReceived = false
            answer(client, sockets, sink, &hasReceived)
        }
        if let key { client.queryWatch.store(key, ordering: .sequentiallyConsistent) }
    }

    private func answer(
        _ client: SocketConnection, _ sockets: PortSockets, _ sink: any MessageSink, _ hasReceived: inout Bool
    ) {
        do throws(SystemError) {
            if !hasReceived, try sysPeekPacket(client.descriptor.rawValue).kind == .statistics {
                sockets.receiveArrivals(besides: client)
                hasReceived = true
            }
            let hadAsked = client.isObserving
            if try client.receiver.receiveQuery(from: client) { awaitQuery(of: client) }
            // One that asks is not one of those that may fill the process while no thread polls.
            if !hadAsked, client.isObserving { didAnswerClient() }
        } catch {
            // No memory for a packet: the kernel retains it.
            IOThread.startedLoop?.add(
                RunLoopTimer(after: Tuning.timeUntilRetry) { [weak self] _ in self?.awaitQuery(of: client) })
        }
        if client.isClosed { _ = sockets.removeEnded(client, of: sink) }
    }
}

extension PacketKind {
    /// Whether it asks about the port, and takes no slot of its queue.
    var isQuery: Bool { self == .statistics || self == .tap || self == .credit }
}

extension PeekOutcome {
    /// The kind of the packet; nil when there is none, or none that the format has.
    var kind: PacketKind? { if case .packet(let first) = self { PacketHeader.kind(ofPacketWith: first) } else { nil } }
}

extension PortSockets {
    /// Whether the I/O thread accepts clients. Those of a supervisor's socket wait in its backlog: they are the next owner's
    /// if this one ends.
    fileprivate var isWatchedInBackground: Bool { state.withLock { $0.backgroundWatch != nil } }

    /// Removes the connection of a client that is gone, if it has only asked. That of a sender stays until a thread polls,
    /// which notices that the sender has ended.
    ///
    /// - Returns: whether this call has removed it.
    fileprivate func removeEnded(_ client: SocketConnection, of sink: any MessageSink) -> Bool {
        guard client.isOnlyObserving, state.withLock({ $0.isMember(client) }) else { return false }
        return removeEnded(client, client.number, of: sink)
    }

    /// Removes a connection that has ended, if it has.
    ///
    /// - Returns: whether this call has removed a connection of the port.
    func removeEnded(_ member: SocketConnection, _ key: UInt64, of sink: any MessageSink) -> Bool {
        guard member.isClosed, remove(key), member.sink === sink else { return false }
        sink.endCredit(of: member)
        return true
    }

    /// How many connections there are.
    var memberCount: Int { state.withLock { $0.members.count } }

    /// Moves what has arrived from other clients into the port's queue, as far as there is room: it counts as waiting. Of
    /// very much that has arrived it moves a part. For probes as many messages as there are connections may exceed the
    /// queue's limit.
    func receiveArrivals(besides client: SocketConnection?, exceedingLimit: Bool = false) {
        if isInherited { return }
        Callouts.hold()
        defer { Callouts.release() }
        moving.withLock { _ in
            for _ in 0..<Tuning.reportRounds {
                let reported = epoll.wait(until: .distantPast).map(\.key)
                let members = state.withLock { state in reported.compactMap { state.members[$0] } + state.busyRings }
                var mayHaveMore = reported.count >= EpollSet.reportLimit
                for member in members where member !== client && !member.isAsking() {
                    if member.receiveUnlessReceiving() { mayHaveMore = true }
                    member.receiver.receiveProbes(from: member, exceedingLimit: exceedingLimit)
                }
                if !mayHaveMore { return }
            }
        }
    }
}

extension SocketConnection {
    /// Whether the next packet of a peer that has sent no message is a query, which is answered after the move.
    fileprivate func isAsking() -> Bool {
        !hasSentMessages && (try? sysPeekPacket(descriptor.rawValue))?.kind?.isQuery == true
    }
}
