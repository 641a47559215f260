// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

// Both owners are in this process: they know each other only by what is sent. `MovedPortTests` has them in two.
@Suite("receive rights that move over a connection", .contract) struct PortMoveContract {
    private static let transports: [TestTransport] = [.socket, .ring]

    @Test("what is in a ring that nobody has read goes along, in order", arguments: [5, 60])
    func unreadRing(count: Int32) async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            for id in 0..<count {
                try right.send(MachMessage(id: id, bytes: [UInt8](repeating: 1, count: Int(id) * 50)))
            }
            // One with a descriptor goes over the socket, between the others.
            try right.send(MachMessage(id: count, components: [.descriptor(SharedDescriptor(duplicating: 0))]))
            try right.send(MachMessage(id: count + 1))
            let moved = try bench.move(port)
            for id in 0...count + 1 { #expect(try moved.next().id == id) }
            for id in count + 2...count + 40 { try right.send(MachMessage(id: id)) }
            for id in count + 2...count + 40 { #expect(try moved.next().id == id) }
        }
    }

    @Test(
        "the queue goes along, in order, and each request in it is answered where it came from",
        arguments: Self.transports)
    func queue(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            for id in Int32(0)..<3 { try right.send(MachMessage(id: id, text: "note \(id)")) }
            let requester = runOnThread { try right.ask(MachMessage(id: 3, text: "request")).text }
            let own = runOnThread { try port.makeSendRight().ask(MachMessage(id: 9)).text }
            port.waitUntilQueued(5)
            let moved = try bench.move(port)
            #expect(!port.isValid)
            #expect(portError { () throws(PortError) in _ = try port.tryReceive() }?.code == .invalidPort)
            var texts: [Int32: String] = [:]
            for _ in 0..<5 {
                let message = try moved.next()
                texts[message.id] = message.text
                if message.expectsReply { try message.reply(MachMessage(text: "reply to \(message.id)")) }
            }
            #expect(texts == [0: "note 0", 1: "note 1", 2: "note 2", 3: "request", 9: ""])
            #expect(try requester.join() == "reply to 3")
            #expect(try own.join() == "reply to 9")
            // The connections are the same, and so is their order.
            for id in Int32(10)..<20 { try right.send(MachMessage(id: id)) }
            for id in Int32(10)..<20 { #expect(try moved.next().id == id) }
            moved.invalidate()
            #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code == .deadName)
        }
    }

    @Test("every right goes on: those of the old owner, also one that waits for room, and new connections")
    func rights() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let right = port.makeSendRight()
            try right.send(MachMessage(id: 0))
            let blocked = runOnThread { try right.send(MachMessage(id: 1)) }
            port.waitUntilSenderWaits()
            let moved = try bench.move(port)
            try blocked.join()
            #expect(!right.isDead)
            #expect(try moved.next().id == 0)
            #expect(try moved.next().id == 1)
            try right.send(MachMessage(id: 2))
            #expect(try moved.next().id == 2)
            let request = runOnThread { try right.ask(MachMessage(id: 3)).text }
            try moved.next().reply(MachMessage(text: "yes"))
            #expect(try request.join() == "yes")
            #expect(moved.queueLimit == 1)
            let late = SendRight(try bench.connect(to: moved.localPort.address(in: bench.directory)))
            try late.send(MachMessage(id: 4))
            #expect(try moved.next().id == 4)
            let died = Gate("the notice")
            let worker = Worker()
            try right.notifyWhenDead(on: worker.loop) { _ in died.open() }
            moved.invalidate()
            died.wait()
            #expect(right.isDead)
            try worker.end()
        }
    }

    @Test("a notice of the port's end waits on, at the new owner")
    func notice() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = port.makeSendRight()
            let (died, worker) = (Gate("the notice"), Worker())
            try right.notifyWhenDead(on: worker.loop) { _ in died.open() }
            let moved = try bench.move(port)
            try right.send(MachMessage(id: 1))
            #expect(try moved.next().id == 1)
            #expect(!died.isOpen)
            moved.invalidate()
            died.wait()
            try worker.end()
        }
    }

    @Test(
        "after each move, also one that is refused, a sender gets rings again, and its order stays", .rings,
        arguments: [false, true], [false, true])
    func ringsAgain(asks: Bool, isRefused: Bool) async throws {
        try await onBench(over: .ring) { bench in
            var holder = try bench.port(queueLimit: 100)
            let right = try bench.right(to: holder)
            let connection = try #require(right.destination as? RemotePort).reached()
            var (sent, seen): (Int32, [Int32]) = (0, [])
            for _ in 0..<3 {
                #expect(connection.hasRings)
                for _ in 0..<5 {
                    try right.send(MachMessage(id: sent))
                    sent += 1
                }
                if isRefused { try bench.refuseMove(holder) } else { holder = try bench.move(holder) }
                // Until the client has read that the port has moved, it has the old ones.
                let deadline = Watchdog.deadline
                while !(connection.hasRings && connection.hasNewRings(at: holder)) {
                    if asks {
                        let id = sent
                        let request = runOnThread { try right.ask(MachMessage(id: id)).id }
                        repeat {
                            let message = try holder.next()
                            seen.append(message.id)
                            if message.expectsReply { try message.reply(MachMessage(id: message.id)) }
                        } while seen.last != id
                        #expect(try request.join() == id)
                    } else {
                        try right.send(MachMessage(id: sent))
                        seen.append(try holder.next().id)
                    }
                    sent += 1
                    if .now >= deadline { return Watchdog.expired("new rings") }
                }
            }
            while let message = try holder.tryReceive() { seen.append(message.id) }
            #expect(seen == Array(0..<sent))
        }
    }

    @Test("a port that owes a reply stays, as it was; it moves once that was given", arguments: Self.transports)
    func owed(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let requester = runOnThread { try right.ask(MachMessage(id: 1)).text }
            let taken = try port.next()
            try right.send(MachMessage(id: 2))
            let carrier = try bench.port()
            carrier.setAcceptsReceiveRights(true)
            let way = try bench.right(to: carrier)
            let message = MachMessage(id: 7, components: [.receiveRight(port)])
            let early = portError { () throws(PortError) in try way.send(message, within: .milliseconds(20)) }
            #expect(early?.code == .sendTimedOut)
            #expect(port.isValid)
            #expect(try carrier.tryReceive() == nil)
            #expect(try port.next().id == 2)
            try right.send(MachMessage(id: 3))
            try taken.reply(MachMessage(text: "late"))
            #expect(try requester.join() == "late")
            try way.send(message)
            let moved = try #require(try carrier.next().receiveRights.first)
            #expect(try moved.next().id == 3)
        }
    }

    @Test("a handler under way ends first, and none begins", arguments: Self.transports)
    func handler(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (begun, mayEnd, seen) = (Gate("the handler"), Gate("its end"), Recorder<Int32>("messages"))
            let port = try bench.port { _, message in
                begun.open()
                mayEnd.wait()
                seen.append(message.id)
            }
            let worker = Worker()
            try port.schedule(on: worker.loop)
            let right = try bench.right(to: port)
            for id in Int32(0)..<3 { try right.send(MachMessage(id: id)) }
            begun.wait()
            let moving = runOnThread { try bench.move(port) }
            port.waitUntilFrozen()
            mayEnd.open()
            let moved = try moving.join()
            #expect(seen.waitUntilCount(1) == [0])
            #expect(try [moved.next().id, moved.next().id] == [1, 2])
            #expect(seen.count == 1)
            try worker.end()
        }
    }

    @Test("where the message cannot be sent, the port goes on", arguments: Self.transports)
    func cancelled(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 0))
            port.waitUntilQueued(1)
            let own = runOnThread { try port.makeSendRight().ask(MachMessage(id: 1)).text }
            port.waitUntilQueued(2)
            let full = try bench.full()
            let message = MachMessage(components: [.receiveRight(port)])
            let early = portError { () throws(PortError) in try full.right.send(message, within: .milliseconds(20)) }
            #expect(early?.code == .sendTimedOut)
            full.port.invalidate()
            #expect(portError { () throws(PortError) in try full.right.send(message) }?.code == .deadName)
            #expect(port.isValid)
            try right.send(MachMessage(id: 2))
            #expect(try port.next().id == 0)
            try port.next().reply(MachMessage(text: "here"))
            #expect(try port.next().id == 2)
            #expect(try own.join() == "here")
        }
    }

    @Test("a port whose message is never received ends, with notices", arguments: Self.transports)
    func undelivered(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let own = port.makeSendRight()
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code }
            let local = runOnThread { portError { () throws(PortError) in _ = try own.ask(MachMessage()) }?.code }
            port.waitUntilQueued(2)
            let carrier = try bench.port()
            carrier.setAcceptsReceiveRights(true)
            try bench.right(to: carrier).send(MachMessage(components: [.receiveRight(port)]))
            carrier.invalidate()
            #expect(try requester.join() == .peerDied)
            #expect(try local.join() == .peerDied)
            waitUntilDescriptorsAreClosed()
            #expect(portError { () throws(PortError) in try own.send(MachMessage()) }?.code == .deadName)
        }
    }

    @Test("a message of which a part has come is completed by the new owner", arguments: [0, 1])
    func partial(descriptors: Int) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let body = [UInt8](repeating: 7, count: 100)
            let message = MachMessage(
                id: 5, components: (descriptors == 1 ? [.descriptor(peer.socket)] : []) + [.bytes(body)])
            let encoded = try OutgoingMessage(message)
            let header = PacketHeader(
                kind: .message, descriptorCount: UInt16(descriptors), messageID: 5,
                componentCount: UInt32(encoded.componentCount), asks: 1, totalLength: UInt64(encoded.size))
            try peer.send(header, Array(encoded.bytes.prefix(50)), encoded.descriptors)
            port.localPort.receiveFromSockets()
            let moved = try bench.move(port)
            try peer.send(PacketHeader(kind: .continuation), Array(encoded.bytes.dropFirst(50)))
            let whole = try moved.next()
            #expect(whole.bytes == body)
            #expect(whole.descriptors.count == descriptors)
            try whole.reply(MachMessage(text: "got it"))
            #expect(try peer.nextPacket(skipping: [.ring, .probe, .moved, .owner])?.header.answers == 1)
        }
    }

    @Test("limits, policy and counts are the same at the new owner; confirmations come from there")
    func limits() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 5, policy: .dropOldest)
            var limits = PeerLimits.standard
            limits.queuedBytes = 12_345
            port.setPeerLimits(limits)
            let right = try bench.right(to: port)
            for id in Int32(0)..<7 { try port.makeSendRight().send(MachMessage(id: id)) }
            let taken = runOnThread {
                try right.send(
                    MachMessage(id: 7), confirming: .taken, sendLimit: longTimeout, confirmationLimit: longTimeout)
            }
            while port.localPort.state.withLock({ $0.mailbox.messageCount }) < 8 { port.localPort.receiveFromSockets() }
            let moved = try bench.move(port)
            let statistics = moved.statistics
            #expect(statistics.queueLimit == 5)
            #expect(statistics.queueCount == 5)
            #expect(statistics.messageCount == 8)
            #expect(statistics.droppedMessageCount == 3)
            #expect(moved.queuePolicy == .dropOldest)
            #expect(moved.localPort.peerRules.limits == limits)
            for id in Int32(3)..<8 { #expect(try moved.next().id == id) }
            try taken.join()
        }
    }

    @Test(
        "while a port moves to and fro, nothing is lost, doubled or out of order, and each request is answered",
        arguments: Self.transports)
    func toAndFro(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 8)
            let (rights, own) = (try (0..<2).map { _ in try bench.right(to: port) }, port.makeSendRight())
            let senders = (rights + [own]).enumerated().map { (sender, right) in
                runOnThread {
                    for number in Int32(0)..<100 {
                        let id = Int32(sender) * 1000 + number
                        do throws(PortError) {
                            if number % 3 == 0 {
                                #expect(try right.ask(MachMessage(id: id)).id == id)
                            } else {
                                try right.send(MachMessage(id: id))
                            }
                        } catch {
                            Issue.record("message \(id): \(error)")
                            throw error
                        }
                    }
                }
            }
            var (holder, seen) = (port, [[Int32]](repeating: [], count: 3))
            var count = 0
            while count < 300 {
                for _ in 0..<7 where count < 300 {
                    let message = try holder.next()
                    if message.expectsReply { try message.reply(MachMessage(id: message.id)) }
                    seen[Int(message.id) / 1000].append(message.id % 1000)
                    count += 1
                }
                holder = try bench.move(holder)
            }
            for sender in senders { try sender.join() }
            for one in seen { #expect(one == Array(0..<100)) }
            #expect(try holder.tryReceive() == nil)
        }
    }
}

extension SocketConnection {
    /// Whether the port's end has rings, too, and this end sends over them.
    fileprivate func hasNewRings(at port: MachPort) -> Bool {
        port.ringCount > 0 && sender.channel.path.withLock { $0.usesRing }
    }
}

extension Bench {
    /// Sends a port's receive right over a connection.
    ///
    /// - Returns: the port that has come.
    func move(_ port: MachPort) throws -> MachPort {
        let carrier = try self.port()
        carrier.setAcceptsReceiveRights(true)
        let way = SendRight(try connect(to: carrier.localPort.address(in: directory)))
        try way.send(MachMessage(components: [.receiveRight(port)]))
        return try #require(try carrier.next().receiveRights.first)
    }

    /// Sends it to a port that accepts none.
    func refuseMove(_ port: MachPort) throws {
        let carrier = try self.port()
        let way = SendRight(try connect(to: carrier.localPort.address(in: directory)))
        let message = MachMessage(components: [.receiveRight(port)])
        let error = portError { () throws(PortError) in try way.send(message) }
        #expect(error?.code == .notTransferable && port.isValid)
    }
}

extension MachPort {
    /// Receives what arrives into the queue until it has this many messages.
    func waitUntilQueued(_ count: Int) {
        let deadline = Watchdog.deadline
        while queueCount < count {
            localPort.receiveFromSockets()
            if .now >= deadline { return Watchdog.expired("\(count) messages in the queue") }
            yieldThread()
        }
    }

    /// How many of its connections have rings.
    var ringCount: Int { localPort.sockets?.clients.count { $0.hasRings } ?? 0 }

    fileprivate func waitUntilSenderWaits() {
        let deadline = Watchdog.deadline
        while localPort.state.withLock({ $0.mailbox.waitingCount }) == 0 {
            if .now >= deadline { return Watchdog.expired("a sender that waits") }
            yieldThread()
        }
    }

    func waitUntilFrozen() {
        let deadline = Watchdog.deadline
        while !localPort.state.withLock({ $0.mailbox.isFrozen }) {
            if .now >= deadline { return Watchdog.expired("a port that is moving") }
            yieldThread()
        }
    }
}
