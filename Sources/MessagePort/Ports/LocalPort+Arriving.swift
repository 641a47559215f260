// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    /// Whether other processes of this user may send it receive rights.
    var acceptsReceiveRights: Bool {
        if isInherited { return false }
        return state.withLock { $0.hasColdState && !$0.mailbox.isDead && $0.coldState.acceptsReceiveRights }
    }

    func setAcceptsReceiveRights(_ accepts: Bool) {
        if isInherited { return }
        state.withLock { if !$0.mailbox.isDead { $0.coldState.acceptsReceiveRights = accepts } }
    }
}

extension LocalPort {
    /// From now on no receive right of another process is taken; what was taken is in the queue when this returns.
    func endArrivals() {
        setAcceptsReceiveRights(false)
        sockets?.waitForReceivers()
    }
}

/// What makes a new port of what another process has sent, which may be anything: all of it is checked before the port is
/// taken, and until then nothing is changed that both processes have.
final class LocalPortArrival: PortArrival {
    let socket: SharedDescriptor  // immutable
    private let port: LocalPort  // immutable
    private let sockets: PortSockets  // immutable
    private let snapshot: PortSnapshot  // immutable
    private let listener: SharedDescriptor  // immutable
    private let lock: SharedDescriptor  // immutable
    private let names: [ReceivedName]  // immutable
    private let clients: [SocketConnection]  // immutable
    private let presence: ReceivedPresence  // immutable
    private let messages: [MachMessage]  // immutable

    /// - Throws: `malformedPacket` when that cannot be a port's; why the kernel does not let this process have it. Then
    ///   the port is useless.
    init(
        of port: LocalPort, as snapshot: PortSnapshot, _ received: [SharedDescriptor], in socket: SharedDescriptor
    ) throws(PortError) {
        (self.port, self.snapshot, self.socket) = (port, snapshot, socket)
        sockets = try port.openSockets()
        var descriptors = received[...]
        (listener, lock) = try Self.listener(in: &descriptors, of: snapshot)
        // A live port of this process's, unless it is the one that moves.
        if let own = RightsTable.shared.ownPort(at: snapshot.address), !own.isFrozen {
            throw PortError(.malformedPacket)
        }
        var (names, clients): ([ReceivedName], [SocketConnection]) = ([], [])
        // Retained until the connections have been left: what is released before would be answered over them.
        var messages: [MachMessage] = []
        do throws(PortError) {
            for name in snapshot.names {
                guard let lock = descriptors.popFirst() else { throw PortError(.malformedPacket) }
                let packed = FileSnapshot(directory: name.directory, name: name.file, lock: lock)
                // One that another process has removed meanwhile is no name.
                if let name = try ReceivedName(packed) { names.append(name) }
            }
            for _ in snapshot.connections { clients.append(try Self.connection(in: &descriptors, to: port)) }
            presence = try ReceivedPresence(snapshot.presence, &descriptors, clients, in: sockets)
            for (client, saved) in zip(clients, snapshot.connections) {
                let count = saved.descriptorCount
                guard descriptors.count >= count, client.resume(saved, Array(descriptors.prefix(count))) else {
                    throw PortError(.malformedPacket)
                }
                descriptors = descriptors.dropFirst(count)
            }
            port.changePeerRules { PeerConfiguration(policy: $0.policy, limits: snapshot.limits) }
            for saved in snapshot.messages {
                messages.append(try port.decode(saved, &descriptors, clients, sockets.quotas, at: snapshot.address))
            }
        } catch {
            for client in clients { client.leave() }
            for name in names { name.leave() }
            messages = []
            throw error
        }
        (self.names, self.clients, self.messages) = (names, clients, messages)
    }

    func giveUp() {
        for client in clients { client.leave() }
        for name in names { name.leave() }
    }

    func complete() {
        do throws(PortError) {
            try PortError.converting(sysListen(listener.rawValue, backlog: ProcessEndpoints.listenBacklog))
            let path = snapshot.address.path
            let listener = Listener(moved: listener.take(), path: path, lock: lock)
            try port.resumeSenders(presence, in: sockets)
            // Rights to this port lead here.
            try port.publish(snapshot.address, of: sockets)
            let (messages, counts) = (messages, snapshot.counts)
            port.state.withLock { $0.mailbox.resume(messages, counts) }
            for (client, saved) in zip(clients, snapshot.connections) {
                client.announceMove()
                try sockets.add(client)
                if saved.use == 1 { client.noteObserver(port) }
            }
            for name in names {
                name.note(snapshot.address)
                _ = port.whenDead(attachment: name) { name.remove() }
            }
            _ = try sockets.listen(on: listener, for: port)
            for client in clients { sockets.background.object?.awaitQuery(of: client) }
        } catch {
            // The old owner has let go of it.
            for client in clients { client.close(PortError(.peerDied)) }
            _ = port.die()
        }
    }

    /// The listener, and the lock of its path.
    private static func listener(
        in descriptors: inout ArraySlice<SharedDescriptor>, of snapshot: PortSnapshot
    ) throws(PortError) -> (SharedDescriptor, lock: SharedDescriptor) {
        guard let listener = descriptors.popFirst(), (try? sysIsPacketSocket(listener.rawValue)) == true,
            (try? sysIsListening(listener.rawValue)) == true, (try? sysIsNonBlocking(listener.rawValue)) == true,
            let bound = (try? sysSocketPath(listener.rawValue)) ?? nil
        else { throw PortError(.malformedPacket) }
        guard let lock = descriptors.popFirst(),
            try PortDirectory.isLock(lock, ofSocketAt: snapshot.address.path, boundTo: bound)
        else { throw PortError(.malformedPacket) }
        return (listener, lock)
    }

    private static func connection(
        in descriptors: inout ArraySlice<SharedDescriptor>, to port: LocalPort
    ) throws(PortError) -> SocketConnection {
        guard let descriptor = descriptors.popFirst(), (try? sysIsPacketSocket(descriptor.rawValue)) == true,
            (try? sysIsListening(descriptor.rawValue)) == false,
            (try? sysIsNonBlocking(descriptor.rawValue)) == true
        else { throw PortError(.malformedPacket) }
        return try SocketConnection(SharedDescriptor(connection: descriptor.take()), port: port)
    }
}

extension LocalPort {
    /// The user and group that the kernel names where it has none (`/proc/sys/kernel/overflowuid`).
    private static let unknownUser: UInt32 = 65_534

    /// A message of the queue, with its sender, its charge, and its reply right.
    fileprivate func decode(
        _ saved: PortSnapshot.Message, _ descriptors: inout ArraySlice<SharedDescriptor>,
        _ clients: [SocketConnection], _ quotas: PeerQuotas, at address: PortAddress
    ) throws(PortError) -> MachMessage {
        let own = Array(descriptors.prefix(saved.descriptorCount))
        descriptors = descriptors.dropFirst(saved.descriptorCount)
        let encoded = EncodedMessage(
            id: saved.id, componentCount: saved.componentCount, payload: saved.payload, descriptors: own)
        let connection = saved.connection.map { clients[$0] }
        let decoded = encoded.decoded(resolve: { found, end in
            // A right to this port in its own queue leads here.
            if found == address { return SendRight(self) }
            return RightsTable.shared.right(receivedAt: found, with: end, from: connection?.owner)
        })
        guard own.count == saved.descriptorCount, var message = decoded else { throw PortError(.malformedPacket) }
        var charge: PeerCharge?
        var target: ReplyTarget?
        if let connection {
            if saved.asks != 0 {
                if !connection.isFree(saved.asks) { throw PortError(.malformedPacket) }
                target = ReplyTarget(
                    RemoteReplyReceiver(connection, token: saved.asks),
                    confirming: SendConfirmation(rawValue: saved.confirmation))
                if saved.isAbandoned { connection.requesterGaveUp(saved.asks) }
            }
            let memory = ResourceUsage.message + saved.componentCount * ResourceUsage.component
            let cost = ResourceUsage(
                messages: 1, bytes: saved.payload.count + memory + message.rightCount * ResourceUsage.right,
                descriptors: own.count)
            charge = quotas.charge(connection.owner, forUnread: cost)
        }
        // Of another user's process the kernel's word is needed, which its connection has.
        let sender = saved.sender.map { sender in
            sysIsOwnUser(sender.user) || sender.user == connection?.peer.userID
                ? PeerIdentity(processID: sender.process, userID: sender.user, groupID: sender.group)
                : PeerIdentity(processID: 0, userID: Self.unknownUser, groupID: Self.unknownUser)
        }
        if let peer = connection?.peer ?? sender {
            // The identity with the connection's number leads to its process.
            let isPeer = sender == nil || sender == peer
            message.envelope.stamp(
                remoteSender: isPeer ? peer : sender ?? peer, charge: charge.take(), replyTarget: target)
        }
        message.cameByReplyRight = saved.cameByReplyRight
        return message
    }
}

extension SocketConnection {
    /// Whether no request of the peer's has the token.
    fileprivate func isFree(_ token: UInt64) -> Bool { state.withLock { !$0.requests.isUnanswered(token) } }
}
