// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

// Whose a port is after a move that does not succeed, or is answered in an unusual order.
@Suite("receive rights that their receiver takes, or does not", .contract) struct MoveOutcomeContract {
    private static let transports: [TestTransport] = [.socket, .ring]

    @Test("a port that does not accept receive rights gets none, and the right stays", arguments: transports)
    func notAccepted(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, carrier) = (try bench.port(), try bench.port())
            let (right, way) = (try bench.right(to: port), try bench.right(to: carrier))
            try right.send(MachMessage(id: 1))
            #expect(!carrier.acceptsReceiveRights)
            let message = MachMessage(id: 7, components: [.receiveRight(port)])
            let error = portError { () throws(PortError) in try way.send(message, within: longTimeout) }
            #expect(error?.code == .notTransferable)
            #expect(port.isValid)
            // As a request, it has no answer either.
            let requester = portError { () throws(PortError) in
                _ = try way.request(message, sendLimit: longTimeout, replyLimit: longTimeout)
            }
            #expect(requester?.code == .notTransferable)
            try way.send(MachMessage(id: 8))
            #expect(try carrier.next().id == 8)
            try right.send(MachMessage(id: 2))
            #expect(try [port.next().id, port.next().id] == [1, 2])
            carrier.setAcceptsReceiveRights(true)
            #expect(carrier.acceptsReceiveRights)
            try way.send(message, within: longTimeout)
            let moved = try #require(try carrier.next().receiveRights.first)
            try right.send(MachMessage(id: 3))
            #expect(try moved.next().id == 3)
        }
    }

    @Test("of two ports in a message, the receiver takes both or none", arguments: transports)
    func twoPorts(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (first, second, carrier) = (try bench.port(), try bench.port(), try bench.port())
            carrier.setAcceptsReceiveRights(true)
            let rights = try [bench.right(to: first), bench.right(to: second)]
            let way = try bench.right(to: carrier)
            let large = [UInt8](repeating: 1, count: 50_000)
            try rights[1].send(MachMessage(id: 1, bytes: large))
            second.waitUntilQueued(1)
            var limits = PeerLimits.standard
            limits.queuedBytes = 20_000
            carrier.setPeerLimits(limits)
            let message = MachMessage(components: [.receiveRight(first), .receiveRight(second)])
            let error = portError { () throws(PortError) in try way.send(message, within: longTimeout) }
            #expect(error?.code == .messageTooLarge)
            #expect(first.isValid && second.isValid)
            try rights[0].send(MachMessage(id: 2))
            #expect(try first.next().id == 2)
            carrier.setPeerLimits(.standard)
            try way.send(message, within: longTimeout)
            let moved = try carrier.next().receiveRights
            #expect(moved.count == 2)
            #expect(!first.isValid && !second.isValid)
            #expect(try moved[1].next().bytes.count == large.count)
            for (index, right) in rights.enumerated() {
                try right.send(MachMessage(id: 10 + Int32(index)))
                #expect(try moved[index].next().id == 10 + Int32(index))
            }
        }
    }

    @Test("a port with more descriptors than its receiver allows stays")
    func tooManyDescriptors() async throws {
        try await onBench(over: .socket) { bench in
            let (port, carrier) = (try bench.port(), try bench.port())
            carrier.setAcceptsReceiveRights(true)
            var limits = PeerLimits.standard
            limits.queuedDescriptors = 4
            carrier.setPeerLimits(limits)
            let rights = try (0..<4).map { _ in try bench.right(to: port) }
            for right in rights {
                try right.send(MachMessage(id: 0))
                #expect(try port.next().id == 0)
            }
            let way = try bench.right(to: carrier)
            let error = portError { () throws(PortError) in
                try way.send(MachMessage(components: [.receiveRight(port)]), within: longTimeout)
            }
            #expect(error?.code == .tooManyDescriptors)
            for right in rights { try right.send(MachMessage(id: 1)) }
            for _ in rights { #expect(try port.next().id == 1) }
        }
    }

    @Test("neither trySend nor a reply moves a port to another process: they cannot wait", arguments: transports)
    func cannotWait(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, carrier) = (try bench.port(), try bench.port())
            carrier.setAcceptsReceiveRights(true)
            let way = try bench.right(to: carrier)
            let message = MachMessage(components: [.receiveRight(port)])
            #expect(portError { () throws(PortError) in _ = try way.trySend(message) }?.code == .notTransferable)
            let requester = runOnThread { portError { () throws(PortError) in _ = try way.ask(MachMessage()) }?.code }
            let request = try carrier.next()
            #expect(portError { () throws(PortError) in try request.reply(message) }?.code == .notTransferable)
            #expect(try requester.join() == .replyDropped)
            #expect(port.isValid)
            try port.makeSendRight().send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
        }
    }

    @Test("while a port owes a reply, and so cannot move yet, its other clients are served", arguments: transports)
    func longPoll(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, carrier) = (try bench.port(), try bench.port())
            carrier.setAcceptsReceiveRights(true)
            let (waiting, other) = (try bench.right(to: port), try bench.right(to: port))
            let requester = runOnThread { try waiting.ask(MachMessage(id: 1)).text }
            let taken = try port.next()
            let way = try bench.right(to: carrier)
            let moving = runOnThread {
                try way.send(MachMessage(components: [.receiveRight(port)]), within: longTimeout)
            }
            port.waitUntilFrozen()
            for id in Int32(2)..<5 {
                let request = runOnThread { try other.ask(MachMessage(id: id)).text }
                let message = try port.next()
                #expect(message.id == id)
                try message.reply(MachMessage(text: "\(id)"))
                #expect(try request.join() == "\(id)")
            }
            try taken.reply(MachMessage(text: "late"))
            #expect(try requester.join() == "late")
            try moving.join()
            let moved = try #require(try carrier.next().receiveRights.first)
            try other.send(MachMessage(id: 9))
            #expect(try moved.next().id == 9)
        }
    }

    @Test("a request that was answered, and is retained, keeps no connection that has moved")
    func retainedRequest() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let requester = runOnThread { try right.ask(MachMessage(id: 1)).id }
            let taken = try port.next()
            try taken.reply(MachMessage(id: 2))
            #expect(try requester.join() == 2)
            let moved = try bench.move(port)
            moved.invalidate()
            let (died, worker) = (Gate("the end of the port"), Worker())
            try right.notifyWhenDead(on: worker.loop) { _ in died.open() }
            died.wait()
            #expect(taken.sender.processID == sysProcessID())
            #expect(portError { () throws(PortError) in _ = try taken.sender.openProcess() } != nil)
            withExtendedLifetime(taken) {}
            try worker.end()
        }
    }

    @Test("a client that the former owner had not accepted learns that the port has another one")
    func waitingClient() async throws {
        try await onBench(over: .socket) { bench in
            // It connects while the port is on its way: nothing accepts it.
            let (moved, peer) = try bench.move(try bench.port()) { try RawPeer(to: $0, on: bench) }
            try peer.send(MachMessage(id: 1), asks: 1)
            try moved.next().reply(MachMessage())
            #expect(try peer.nextPacket(skipping: [])?.header.kind == .moved)
            #expect(try peer.nextPacket(skipping: [])?.header.kind == .owner)
            #expect(try peer.nextPacket(skipping: [])?.header.kind == .message)
            // One that connects later needs no word.
            let late = try RawPeer(to: moved, on: bench)
            try late.send(MachMessage(id: 2), asks: 1)
            try moved.next().reply(MachMessage())
            #expect(try late.nextPacket(skipping: [])?.header.kind == .message)
            moved.invalidate()
        }
    }

    @Test("a client that the former owner had not accepted learns so before its offer of rings is answered")
    func waitingClientWithRings() async throws {
        try await onBench(over: .ring) { bench in
            let (moved, remote) = try bench.move(try bench.port()) {
                try bench.connect(to: $0.localPort.address(in: bench.directory))
            }
            let (right, worker) = (SendRight(remote), Worker())
            moved.setHandler { _, message in try? message.reply(MachMessage(id: message.id)) }
            try moved.schedule(on: worker.loop)
            for id in Int32(0)..<3 { #expect(try right.ask(MachMessage(id: id)).id == id) }
            #expect(try remote.reached().hasRings)
            moved.invalidate()
            try worker.end()
        }
    }

    @Test("a port moves as often as it likes, also while a client sends nothing")
    func often() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1))
            var holder = port
            for _ in 0...Int(PortSnapshot.Connection.renameLimit) { holder = try bench.move(holder) }
            for id in Int32(1)..<20 {
                if id > 1 { try right.send(MachMessage(id: id)) }
                #expect(try holder.next().id == id)
            }
        }
    }

    @Test("a port moves on, and comes home", arguments: transports)
    func again(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let (right, own) = (try bench.right(to: port), port.makeSendRight())
            var holder = port
            for id in Int32(0)..<5 {
                try right.send(MachMessage(id: id))
                try own.send(MachMessage(id: 100 + id))
                holder = try bench.move(holder)
            }
            var ids: [Int32] = []
            for _ in 0..<10 { ids.append(try holder.next().id) }
            #expect(ids.filter { $0 < 100 } == [0, 1, 2, 3, 4])
            #expect(ids.filter { $0 >= 100 } == [100, 101, 102, 103, 104])
        }
    }

    // MARK: The moment of the answer

    /// What the receiver of a port does, which a test decides.
    enum Receiver: CaseIterable {
        case takes, refuses, closes, repliesNonsense
    }

    @Test("the receiver's one answer decides", arguments: Receiver.allCases)
    func answer(receiver: Receiver) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1))
            let (way, thread) = try bench.rawListener { peer in
                let socket = try peer.arrival()
                _ = try PortTransfer.unpack(socket, room: ResourceUsage(bytes: .max, descriptors: .max))
                switch receiver {
                case .takes: #expect(PortTransfer.take(socket))
                case .refuses: PortTransfer.refuse(.descriptorsLost, over: socket)
                case .closes: break
                case .repliesNonsense: _ = try sysSendPacket(socket.rawValue, head: PacketHeader(kind: .moved).words)
                }
            }
            let error = portError { () throws(PortError) in
                try way.send(MachMessage(components: [.receiveRight(port)]), within: longTimeout)
            }
            try thread.join()
            let expected: PortError.Code? =
                switch receiver {
                case .takes: nil
                case .refuses: .descriptorsLost
                case .closes: .notTransferable
                case .repliesNonsense: .malformedPacket
                }
            #expect(error?.code == expected)
            #expect(port.isValid == (receiver != .takes))
            if receiver == .takes {
                // It has closed everything.
                waitUntilDescriptorsAreClosed()
                #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code == .deadName)
            } else {
                try right.send(MachMessage(id: 2))
                #expect(try [port.next().id, port.next().id] == [1, 2])
            }
        }
    }

    @Test("a port that is not taken in time goes on")
    func late() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let ended = Gate("the end of the time limit")
            let (way, thread) = try bench.rawListener { _ in ended.wait() }
            let error = portError { () throws(PortError) in
                try way.send(MachMessage(components: [.receiveRight(port)]), within: .milliseconds(20))
            }
            #expect(error?.code == .sendTimedOut)
            ended.open()
            try thread.join()
            try right.send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
        }
    }

    @Test("a port that was taken back is refused to its receiver")
    func takenBack() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let move = try #require(try port.beginMove(to: nil, with: nil, besides: nil, until: Watchdog.deadline))
            let room = ResourceUsage(bytes: .max, descriptors: .max)
            let (_, arrival, _) = try MachMessage.Component.receiveRight(arrivingIn: move.descriptor, room: room)
            #expect(move.offer.withdraw(PortError(.sendTimedOut)) == .stays(PortError(.sendTimedOut)))
            #expect(!PortTransfer.take(arrival.socket))
            arrival.giveUp()
            move.cancel()
            try right.send(MachMessage(id: 1))
            #expect(try port.next().id == 1)
        }
    }

    @Test("a port that is invalidated while it is offered ends, and its receiver does not get it")
    func invalidated() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let (offered, ended) = (Gate("the offer"), Gate("the port's end"))
            let (way, thread) = try bench.rawListener { peer in
                let socket = try peer.arrival()
                offered.open()
                ended.wait()
                _ = try PortTransfer.unpack(socket, room: ResourceUsage(bytes: .max, descriptors: .max))
                #expect(!PortTransfer.take(socket))
            }
            let moving = runOnThread {
                portError { () throws(PortError) in
                    try way.send(MachMessage(components: [.receiveRight(port)]), within: longTimeout)
                }?.code
            }
            offered.wait()
            port.invalidate()
            #expect(!port.isValid)
            ended.open()
            try thread.join()
            #expect(try moving.join() == .invalidPort)
            waitUntilDescriptorsAreClosed()
            #expect(portError { () throws(PortError) in try right.send(MachMessage()) }?.code == .deadName)
        }
    }

    @Test("a port that is invalidated after its receiver has taken it stays with that")
    func invalidatedLate() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 1))
            port.waitUntilQueued(1)
            let move = try #require(try port.beginMove(to: nil, with: nil, besides: nil, until: Watchdog.deadline))
            let room = ResourceUsage(bytes: .max, descriptors: .max)
            let (component, arrival, _) = try MachMessage.Component.receiveRight(
                arrivingIn: move.descriptor, room: room)
            #expect(PortTransfer.take(arrival.socket))
            port.invalidate()
            #expect(!port.isValid)
            arrival.complete()
            let moved = try #require(MachMessage(components: [component]).receiveRights.first)
            #expect(try moved.next().id == 1)
            try right.send(MachMessage(id: 2))
            #expect(try moved.next().id == 2)
            moved.invalidate()
        }
    }
}

extension Bench {
    /// Moves a port; `body` is called while it is on its way.
    ///
    /// - Returns: the port at its new owner, and the result of `body`.
    fileprivate func move<Result>(
        _ port: MachPort, meanwhile body: (MachPort) throws -> Result
    ) throws -> (MachPort, Result) {
        _ = try port.localPort.address(in: directory)
        let move = try #require(try port.beginMove(to: nil, with: nil, besides: nil, until: Watchdog.deadline))
        let result = try body(port)
        let room = ResourceUsage(bytes: .max, descriptors: .max)
        let (component, arrival, _) = try MachMessage.Component.receiveRight(arrivingIn: move.descriptor, room: room)
        #expect(PortTransfer.take(arrival.socket))
        move.commit()
        arrival.complete()
        return (try #require(MachMessage(components: [component]).receiveRights.first), result)
    }
}

extension RawPeer {
    /// Waits for a message with a receive right.
    ///
    /// - Returns: what that travels in.
    fileprivate func arrival() throws -> SharedDescriptor {
        let packet = try #require(try nextPacket(skipping: [.ring, .probe, .credit]))
        #expect(packet.header.kind == .message)
        return try #require(packet.descriptors.first)
    }
}
