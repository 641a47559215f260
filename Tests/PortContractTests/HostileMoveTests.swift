// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("receive rights of a hostile process", .contract) struct HostileMoveTests {
    enum Content: CaseIterable {
        /// A port, as a check of these tests: it is accepted.
        case port
        case noSocket, nothing, noSnapshot, tooFew, tooMany, noListener, otherAddress, liveAddress, noLock, unheldLock
        case noConnection, badMessage, sameToken, badPart
    }

    @Test(
        "a receive right without a port that can be ends its connection, and nothing else",
        arguments: Content.allCases)
    func refused(content: Content) async throws {
        try await onBench(over: .socket) { bench in
            let carrier = try bench.port()
            carrier.setAcceptsReceiveRights(true)
            let other = try bench.right(to: carrier)
            let peer = try RawPeer(to: carrier, on: bench)
            let endpoints = try bench.directory.endpoints()
            let listener = try endpoints.makeListener(backlog: 1)
            let offer: PortOffer?
            do {
                let (made, descriptor) = try Self.offer(of: content, listener, endpoints, at: carrier)
                offer = made
                let header = PacketHeader(
                    kind: .message, descriptorCount: 1, messageID: 7, componentCount: 1,
                    totalLength: UInt64(ComponentKind.headSize))
                try peer.send(header, [ComponentKind.receiveRight.rawValue, 0, 0, 0, 0, 0, 0, 0], [descriptor])
            }
            carrier.localPort.receiveFromSockets()
            withExtendedLifetime(offer) {}
            if content == .port {
                let message = try carrier.next()
                #expect(message.id == 7)
                for port in message.receiveRights { port.invalidate() }
                #expect(message.receiveRights.count == 1)
            } else {
                let answer = try #require(try peer.next())
                #expect(answer.kind == .refused)
                #expect(answer.messageID == Int32(PortError.Code.malformedPacket.rawValue))
            }
            try other.send(MachMessage(id: 1))
            #expect(try carrier.next().id == 1)
            listener.close()
            waitUntilDescriptorsAreClosed()
        }
    }

    @Test("ports that are too large together are refused, and what one occupies counts until its message is gone")
    func accounts() async throws {
        try await onBench(over: .socket) { bench in
            let carrier = try bench.port()
            carrier.setAcceptsReceiveRights(true)
            var limits = PeerLimits.standard
            limits.queuedBytes = 100_000
            carrier.setPeerLimits(limits)
            let ports = try (0..<2).map { _ in try bench.port() }
            for port in ports {
                try port.makeSendRight().send(MachMessage(id: 1, bytes: [UInt8](repeating: 1, count: 60_000)))
            }
            let way = try bench.right(to: carrier)
            let both = MachMessage(components: ports.map { .receiveRight($0) })
            let error = portError { () throws(PortError) in try way.send(both, within: longTimeout) }
            #expect(error?.code == .messageTooLarge)
            #expect(ports[0].isValid && ports[1].isValid)
            try way.send(MachMessage(id: 2, components: [.receiveRight(ports[0])]), within: longTimeout)
            let quotas = try #require(carrier.localPort.sockets).quotas
            let owner = PeerID.process(PeerIdentity.current.processID)
            #expect(quotas.withLock { $0.allowance(of: owner).bytes } < 40_000)
            #expect(
                portError { () throws(PortError) in
                    try way.send(MachMessage(components: [.receiveRight(ports[1])]), within: longTimeout)
                }?.code == .messageTooLarge)
            do {
                let message = try carrier.next()
                #expect(message.id == 2)
                for port in message.receiveRights { port.invalidate() }
            }
            try way.send(MachMessage(id: 3, components: [.receiveRight(ports[1])]), within: longTimeout)
            #expect(try carrier.next().id == 3)
        }
    }

    @Test("a port that comes names no process of another user as the sender of a message, without its connection")
    func forgedSender() async throws {
        try await onBench(over: .socket) { bench in
            let endpoints = try bench.directory.endpoints()
            let listener = try endpoints.makeListener(backlog: 1)
            var snapshot = PortSnapshot(
                address: PortAddress(path: listener.path), queueLimit: 4, policy: .refuse, limits: .standard)
            for user in [sysUserID(), sysUserID() &+ 1] {
                snapshot.messages.append(
                    PortSnapshot.Message(
                        id: 1, componentCount: 0, payload: [], descriptorCount: 0,
                        sender: PortSnapshot.Sender(process: 1, user: user, group: 0)))
            }
            let descriptors = [
                try SharedDescriptor(duplicating: listener.descriptor.raw), try endpoints.duplicateLock(),
            ]
            let transfer = try PortTransfer.pack(snapshot, descriptors)
            let room = ResourceUsage(bytes: .max, descriptors: .max)
            let (component, arrival, _) = try MachMessage.Component.receiveRight(
                arrivingIn: transfer.descriptor, room: room)
            #expect(PortTransfer.take(arrival.socket))
            arrival.complete()
            let port = try #require(MachMessage(components: [component]).receiveRights.first)
            #expect(try port.next().sender.userID == sysUserID())
            let forged = try port.next().sender
            #expect(forged.userID != sysUserID() &+ 1)
            #expect(forged.processID == 0)
            port.invalidate()
            listener.close()
        }
    }

    @Test("a port that has not moved names no new owner")
    func unmovedOwner() async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/raw")
            let right = SendRight(try #require(try RightsTable.connect(to: listener.address)))
            let peer = try listener.accept()
            try peer.send(PacketHeader(kind: .owner))
            #expect(try right.owner() == .current)
            #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code != nil)
            #expect(right.isDead)
            #expect(try peer.nextPacket(skipping: [])?.header.kind == .refused)
        }
    }

    @Test("a packet with which the kernel names no process names no owner")
    func unnamedOwner() async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/raw")
            let right = SendRight(try #require(try RightsTable.connect(to: listener.address)))
            let peer = try listener.accept()
            try peer.send(PacketHeader(kind: .moved))
            try peer.send(PacketHeader(kind: .owner))
            #expect(try right.owner().processID == 0)
            try peer.send(PacketHeader(kind: .moved))
            #expect(
                try sysSendCredentials(peer.socket.rawValue, head: PacketHeader(kind: .owner).words) == .sent)
            #expect(try right.owner() == .current)
            try right.send(MachMessage(id: 1))
            #expect(!right.isDead)
        }
    }

    private static func offer(
        of content: Content, _ listener: borrowing Listener, _ endpoints: ProcessEndpoints, at carrier: MachPort
    ) throws -> (PortOffer?, SharedDescriptor) {
        let null = { try SharedDescriptor(sysOpen("/dev/null", .reading)) }
        let address = PortAddress(path: listener.path)
        var snapshot = PortSnapshot(address: address, queueLimit: 4, policy: .refuse, limits: .standard)
        let (here, there) = try sysPacketSocketPair()
        var descriptors = [
            try SharedDescriptor(duplicating: listener.descriptor.raw), try endpoints.duplicateLock(),
        ]
        switch content {
        case .port: break
        case .noSocket: return (nil, try null())
        case .nothing: return (nil, here)
        case .noSnapshot:
            let header = PacketHeader(kind: .port, descriptorCount: 1, totalLength: 100)
            let file = try SharedMemory.makeFile(of: [1, 2])
            _ = try sysSendPacket(there.rawValue, head: header.words, descriptors: [file])
            return (nil, here)
        case .tooFew: descriptors.removeLast()
        case .tooMany: descriptors.append(try null())
        case .noListener: descriptors[0] = here
        case .otherAddress: snapshot.address = PortAddress(path: endpoints.path(of: endpoints.makeSocketName()))
        case .liveAddress: snapshot.address = try carrier.localPort.address()
        case .noLock: descriptors[1] = try null()
        case .unheldLock:
            let path = endpoints.path(of: EndpointFileName.lock(of: endpoints.id))
            descriptors[1] = SharedDescriptor(try sysOpen(path, .creating))
        case .noConnection:
            snapshot.connections = [PortSnapshot.Connection(use: 2, lastToken: 0, partial: nil)]
            descriptors.append(try null())
        case .badMessage:
            snapshot.messages = [
                PortSnapshot.Message(id: 1, componentCount: 1, payload: [9, 9, 9, 9, 9, 9, 9, 9], descriptorCount: 0)
            ]
        case .sameToken:
            snapshot.connections = [PortSnapshot.Connection(use: 2, lastToken: 0, partial: nil)]
            descriptors.append(there)
            let message = PortSnapshot.Message(
                id: 1, componentCount: 0, payload: [], descriptorCount: 0, connection: 0, asks: 3)
            snapshot.messages = [message, message]
        case .badPart:
            var assembly = PacketAssembly()
            let header = PacketHeader(kind: .message, componentCount: 1, totalLength: 100)
            _ = assembly.accept(header, payload: [1, 0, 0, 0, 92, 0, 0, 0, 9], descriptors: [])
            var part = assembly.remainder?.0
            part?.count = 20
            snapshot.connections = [PortSnapshot.Connection(use: 2, lastToken: 0, partial: part)]
            descriptors.append(there)
        }
        return try PortTransfer.pack(snapshot, descriptors)
    }
}
