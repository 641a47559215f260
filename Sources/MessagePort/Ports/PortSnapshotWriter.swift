// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension PortError.StaticReason {
    fileprivate static let isSupervisors = Self("its socket is a supervisor's, which starts the next owner")
}

/// Collects what a frozen port consists of.
struct PortSnapshotWriter {
    private var snapshot: PortSnapshot
    private var descriptors: [SharedDescriptor]
    private var messageDescriptors: [SharedDescriptor] = []
    private let clients: [SocketConnection]
    private var indices: [ObjectIdentifier: Int] = [:]
    /// By the number of the connection in identities.
    private var numbers: [UInt64: Int] = [:]
    /// This process's connection to the port, over which what is sent here afterwards goes.
    private let own: SocketConnection
    private var tokens: [UInt64] = []
    private var attachments: [any PortAttachment] = []

    init(_ port: LocalPort, _ address: PortAddress, _ sockets: PortSockets) throws(PortError) {
        guard let listener = try sockets.listenerToMove() else {
            throw PortError(.notTransferable, subject: .reason(.isSupervisors)).at(port.label)
        }
        clients = sockets.clients
        let (here, there) = try PortError.converting(sysPacketSocketPair())
        own = try SocketConnection(here, port: nil, at: address)
        own.ownerDidChange(to: nil)  // the kernel names this process until the next owner has the port
        descriptors = listener
        var names: [PortSnapshot.Name] = []
        for attachment in port.attachments {
            guard let packed = try attachment.pack() else { continue }
            names.append(PortSnapshot.Name(directory: packed.directory, file: packed.name))
            descriptors.append(packed.lock)
            attachments.append(attachment)
        }
        descriptors += clients.map(\.descriptor) + [there]
        let senders = try port.packSenders(of: sockets, clients)
        descriptors += senders.ends
        let limits = port.peerRules.limits
        snapshot = port.state.withLock { state in
            PortSnapshot(
                address: address, queueLimit: state.mailbox.limit,
                policy: state.mailbox.policy, limits: limits, counts: state.mailbox.counts)
        }
        snapshot.names = names
        snapshot.presence = senders.presence
        for (index, client) in clients.enumerated() {
            let (connection, partial) = client.snapshot()
            snapshot.connections.append(connection)
            descriptors += partial
            indices[ObjectIdentifier(client)] = index
            numbers[client.number] = index
        }
        // It may choose its first number, and another, before it has read that the port has moved.
        snapshot.connections.append(PortSnapshot.Connection(use: 0, lastToken: 0, renames: 1))
        indices[ObjectIdentifier(own)] = clients.count
    }

    mutating func add(_ message: MachMessage) throws(PortError) {
        let encoded: OutgoingMessage
        switch try message.encodedOrFull() {
        case .success(let message): encoded = message
        case .failure: throw PortError(.sendTimedOut)
        }
        var packed = PortSnapshot.Message(
            id: message.id, componentCount: encoded.componentCount, payload: encoded.payload,
            descriptorCount: encoded.descriptors.count, cameByReplyRight: message.cameByReplyRight)
        if let sender = message.remoteSender {
            packed.connection = numbers[sender.connection]
            packed.sender = PortSnapshot.Sender(
                process: sender.processID, user: sender.userID, group: sender.groupID)
        } else {
            packed.connection = clients.count
        }
        if let target = message.replyTarget, target.isOpen {
            if let receiver = target.receiver as? RemoteReplyReceiver,
                let index = indices[ObjectIdentifier(receiver.connection)]
            {
                (packed.connection, packed.asks) = (index, receiver.token)
                packed.isAbandoned = receiver.connection.isAbandoned(receiver.token)
            } else {
                // What awaits the answer is in this process, or behind it.
                let token = try own.expectReply(for: target)
                if token != 0 {
                    tokens.append(token)
                    (packed.connection, packed.asks) = (clients.count, token)
                }
            }
            if packed.asks != 0 { packed.confirmation = target.confirmation?.rawValue ?? 0 }
        }
        snapshot.messages.append(packed)
        messageDescriptors += encoded.descriptors
    }

    func finish(
        _ port: LocalPort, _ sockets: PortSockets, with offer: PortOffer?
    ) throws(PortError) -> LocalPortMove {
        let (made, descriptor) = try PortTransfer.pack(snapshot, descriptors + messageDescriptors)
        return LocalPortMove(
            port, sockets, descriptor, offer ?? made, RemotePort(snapshot.address, over: own), clients,
            snapshot.messages.count, tokens, attachments)
    }

    func giveUp() {
        for token in tokens { own.forget(token: token) }
    }
}
