// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// Polls a port, which no thread serves, until the notice has come.
private func waitForNotice(_ notices: Counter, of port: MachPort) throws {
    let deadline = Watchdog.deadline
    while notices.value == 0 {
        port.localPort.receiveFromSockets()
        if .now >= deadline { return Watchdog.expired("the notice") }
        yieldThread()
    }
}

/// A port that counts, wherever it is.
private struct MovingPort {
    var port: MachPort
    private let bench: Bench
    private let worker = Worker()
    let notices = Counter("no-senders notices")

    init(on bench: Bench, isCounting: Bool = true) throws {
        self.bench = bench
        port = try bench.port()
        if isCounting { try ask() }
    }

    func ask() throws { try port.notifyWhenNoSenders(on: worker.loop) { [notices] in notices.increment() } }

    /// The port is another owner's, which asks for the notice.
    mutating func move() throws {
        port = try bench.move(port)
        try ask()
    }

    /// A sender is left, as far as the port finds out now.
    func expectSenders(sourceLocation: SourceLocation = #_sourceLocation) throws {
        for _ in 0..<3 { port.localPort.receiveFromSockets() }
        try worker.perform {}
        #expect(notices.value == 0, sourceLocation: sourceLocation)
    }

    /// No sender is left.
    func expectNotice(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try waitForNotice(notices, of: port)
        #expect(notices.value == 1, sourceLocation: sourceLocation)
        port.invalidate()
        try worker.end()
    }
}

/// The notice that no sender is left, at a port that moves: not before the last right is gone, and then.
@Suite("no senders are left of a port that moves", .contract) struct MovingSendersContract {
    private static let transports: [TestTransport] = [.socket, .ring, .process]

    @Test("a right in another process, which has not used it, counts at the new owner", arguments: transports)
    func unused(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            var moving = try MovingPort(on: bench)
            let far = try bench.farPort()
            try bench.right(to: far).send(MachMessage(components: [.right(moving.port.makeSendRight())]))
            for _ in 0..<2 {
                try moving.move()
                try moving.expectSenders()
            }
            var message: FarMessage? = try far.next()
            try moving.move()
            try moving.expectSenders()
            withExtendedLifetime(message) {}
            message = nil
            try moving.expectNotice()
        }
    }

    @Test("what another process does with such a right counts at the new owner", arguments: [false, true])
    func used(afterwards: Bool) async throws {
        try await onBench(over: .process, endsAs: .signalled(9)) { bench in
            var moving = try MovingPort(on: bench)
            let far = try bench.farPort()
            try bench.right(to: far).send(MachMessage(components: [.right(moving.port.makeSendRight())]))
            let retained = try far.retainNext()
            if afterwards { try moving.move() }
            try bench.far.order(Order(.sendBack, retained, numbers: [0]))
            if !afterwards { try moving.move() }
            _ = try moving.port.next()
            try moving.expectSenders()
            try bench.killFarSide()
            try moving.expectNotice()
        }
    }

    @Test("a client that was connected counts at the new owner until it is gone", arguments: [false, true])
    func client(isUsed: Bool) async throws {
        try await onBench(over: .socket) { bench in
            var moving = try MovingPort(on: bench, isCounting: false)
            var right: SendRight? = try bench.right(to: moving.port)
            if isUsed {
                try right?.send(MachMessage(id: 1))
                #expect(try moving.port.next().id == 1)
            }
            try moving.move()
            try moving.expectSenders()
            withExtendedLifetime(right) {}
            right = nil
            try moving.expectNotice()
        }
    }

    @Test(
        "the rights of the old owner count at the new one, also where that has never counted, until the last is gone",
        arguments: [false, true])
    func old(isCounting: Bool) async throws {
        try await onBench(over: .socket) { bench in
            var moving = try MovingPort(on: bench, isCounting: isCounting)
            let old = moving.port
            var rights = [old.makeSendRight(), old.makeSendRight()]
            try moving.move()
            try moving.expectSenders()
            rights.removeLast()
            try moving.expectSenders()
            try rights[0].send(MachMessage(id: 1))
            #expect(try moving.port.next().id == 1)
            try moving.expectSenders()
            rights.removeLast()
            try moving.expectNotice()
            #expect(!old.isValid)
        }
    }

    @Test("a right that the old owner passes on counts, and what was passed on before", arguments: [false, true])
    func passedOn(afterwards: Bool) async throws {
        try await onBench(over: .process) { bench in
            var moving = try MovingPort(on: bench)
            let far = try bench.farPort()
            let way = try bench.right(to: far)
            var own: SendRight? = moving.port.makeSendRight()
            if afterwards { try moving.move() }
            if let own { try way.send(MachMessage(components: [.right(own), .right(own)])) }
            if !afterwards { try moving.move() }
            own = nil
            try moving.expectSenders()
            _ = try far.next()
            try moving.expectNotice()
        }
    }

    @Test("a right that was found by its address, and passed on, counts when the port has moved", arguments: [0, 1])
    func announced(moves: Int) async throws {
        try await onBench(over: .process) { bench in
            var moving = try MovingPort(on: bench, isCounting: false)
            let far = try bench.farPort()
            do {
                let found = SendRight(try bench.connect(to: moving.port.localPort.address()))
                try bench.right(to: far).send(MachMessage(components: [.right(found)]))
                // The announcement is read by one owner or the next.
                if moves > 0 { moving.port.localPort.receiveFromSockets() }
            }
            for _ in 0...moves { try moving.move() }
            try moving.expectSenders()
            _ = try far.next()
            try moving.expectNotice()
        }
    }

    @Test("a right in the queue of the port itself counts until that is read")
    func inItsQueue() async throws {
        try await onBench(over: .socket) { bench in
            var moving = try MovingPort(on: bench)
            try moving.port.makeSendRight().send(MachMessage(components: [.right(moving.port.makeSendRight())]))
            try moving.move()
            try moving.expectSenders()
            var message: MachMessage? = try moving.port.next()
            #expect(message?.rights == [moving.port.makeSendRight()])
            try moving.expectSenders()
            message = nil
            try moving.expectNotice()
        }
    }

    @Test("a port that stays, because its message was not sent, delivers its notice", arguments: [false, true])
    func cancelled(hasAddress: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let (port, worker, notices) = (MachPort(), Worker(), Counter("no-senders notices"))
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            var right: SendRight? = port.makeSendRight()
            // As the beginning of a move does, in a directory of the test's.
            if !hasAddress { port.localPort.willMove() }
            _ = try port.localPort.address(in: bench.directory)
            if hasAddress {
                try bench.right(to: port).send(MachMessage(id: 1))
                #expect(try port.next().id == 1)
            }
            let full = try bench.full()
            let message = MachMessage(components: [.receiveRight(port)])
            let error = portError { () throws(PortError) in try full.right.send(message, within: .milliseconds(20)) }
            #expect(error?.code == .sendTimedOut)
            try worker.perform {}
            #expect(notices.value == 0)
            withExtendedLifetime(right) {}
            right = nil
            try waitForNotice(notices, of: port)
            port.invalidate()
            try worker.end()
        }
    }

    @Test("while a port is packed its notice cannot be asked for, and is not delivered")
    func packed() async throws {
        try await onBench(over: .socket) { bench in
            let (port, worker, notices) = (try bench.port(), Worker(), Counter("no-senders notices"))
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            var right: SendRight? = port.makeSendRight()
            do {
                try bench.right(to: port).send(MachMessage(id: 1))
                #expect(try port.next().id == 1)
            }
            port.localPort.receiveFromSockets()
            var move: LocalPortMove? = try port.localPort.beginMove(
                with: nil, besides: nil, until: Watchdog.deadline)
            #expect(
                portError { () throws(PortError) in try port.notifyWhenNoSenders(on: worker.loop) {} }?.code
                    == .invalidPort)
            withExtendedLifetime(right) {}
            right = nil
            for _ in 0..<3 { port.localPort.receiveFromSockets() }
            try worker.perform {}
            #expect(notices.value == 0)
            move?.cancel()
            move = nil  // which has the port's own end, too
            try waitForNotice(notices, of: port)
            port.invalidate()
            try worker.end()
        }
    }

    @Test("a right that comes to the process that the port has left counts at the new owner", arguments: [false, true])
    func comesToFormerOwner(hasRight: Bool) async throws {
        try await onBench(over: .process) { bench in
            // The far side is the new owner's only client; the former owner's object stays.
            var moving = try MovingPort(on: bench)
            let (former, far) = (moving.port, try bench.farPort())
            let address = try former.localPort.address()
            try bench.right(to: far).send(MachMessage(components: [.right(former.makeSendRight())]))
            var kept: SendRight? = hasRight ? former.makeSendRight() : nil
            // Both owners are in this process: the address leads to the former one, as where they are two.
            try moving.move()
            RightsTable.shared.publish(former.localPort, at: address)
            var message: FarMessage? = try far.next()
            var come = message?.rights.first
            #expect(come?.destination === former.localPort)
            message = nil
            try moving.expectSenders()
            withExtendedLifetime((kept, come)) {}
            kept = nil
            try moving.expectSenders()
            come = nil
            try moving.expectNotice()
            RightsTable.shared.didEnd(former.localPort, at: address)
        }
    }

    @Test("a right to a port that has left names no process as its owner before the next one has the port")
    func owner() async throws {
        try await onBench(over: .socket) { bench in
            let (port, carrier) = (try bench.port(), try bench.port())
            let right = port.makeSendRight()
            carrier.setAcceptsReceiveRights(true)
            let way = try bench.right(to: carrier)
            try way.send(MachMessage(components: [.receiveRight(port)]))
            // The old one is not named any more, and the new one is as soon as it says so.
            let known = try right.owner()
            #expect(known.processID == 0 || known == .current)
            let moved = try #require(try carrier.next().receiveRights.first)
            #expect(try right.owner() == .current)
            moved.invalidate()
        }
    }

    @Test("a client that the program's policy admits while its port begins to move goes along")
    func admittedMeanwhile() async throws {
        try await onBench(over: .socket) { bench in
            var moving = try MovingPort(on: bench, isCounting: false)
            let (begun, mayEnd, port) = (Gate("the policy"), Gate("its answer"), moving.port)
            port.setPeerPolicy(
                PeerPolicy { _ in
                    begun.open()
                    mayEnd.wait()
                    return true
                })
            var right: SendRight? = try bench.right(to: port)
            let accepting = runOnThread { port.localPort.receiveFromSockets() }
            begun.wait()
            let opening = runOnThread {
                port.waitUntilFrozen()
                mayEnd.open()
            }
            try moving.move()
            try accepting.join()
            try opening.join()
            try right?.send(MachMessage(id: 1))
            #expect(try moving.port.next().id == 1)
            try moving.expectSenders()
            right = nil
            try moving.expectNotice()
        }
    }

    @Test("pipes that are none end the connection that brings them, and nothing else", arguments: [0, 1, 2, 3])
    func noPipes(index: Int) async throws {
        let snapshot = PortSnapshot(
            address: PortAddress(path: "/tmp/" + String(repeating: "0", count: 32) + ".1"), queueLimit: 4,
            policy: .refuse, limits: .standard)
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let pipe = try PresencePipe()
            var presence = snapshot.presence
            var ends = [pipe.writing]
            switch index {
            case 0: presence.hasReleasedPipe = true
            case 1: presence.announcers = [nil]
            case 2: (presence.hasOpenPipe, ends) = (true, [pipe.reading, pipe.reading])
            default: (presence.hasReleasedPipe, ends) = (true, [SharedDescriptor(try sysOpen("/dev/null", .reading))])
            }
            var rest = ends[...]
            let sockets = try port.localPort.openSockets()
            let error = portError { () throws(PortError) in
                _ = try ReceivedPresence(presence, &rest, [], in: sockets)
            }
            #expect(error?.code == .malformedPacket)
        }
    }
}
