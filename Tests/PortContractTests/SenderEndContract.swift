// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A port that counts, and what its thread was notified of.
private struct CountingPort {
    let port: MachPort
    let worker = Worker()
    let notices = Counter("no-senders notices")

    init(on bench: Bench) throws {
        port = try bench.port { _, _ in }
        try port.schedule(on: worker.loop)
        try ask()
    }

    func ask() throws { try port.notifyWhenNoSenders(on: worker.loop) { [notices] in notices.increment() } }

    /// A message with a right to the port, of which nothing else retains a copy.
    func offer(_ id: Int32 = 0) -> MachMessage { MachMessage(id: id, components: [.right(port.makeSendRight())]) }

    /// Whether a sender is left, as far as the port finds out now.
    func expectSenders(sourceLocation: SourceLocation = #_sourceLocation) throws {
        for _ in 0..<3 { port.localPort.receiveFromSockets() }
        try worker.perform {}
        #expect(notices.value == 0, sourceLocation: sourceLocation)
    }

    func end() throws {
        port.invalidate()
        try worker.end()
    }
}

/// When a right holds back the notice that no sender is left, wherever the right is.
@Suite("no senders are left", .contract) struct SenderEndContract {
    @Test(
        "a right counts in a message that was not read, and in one that was, until it is released",
        arguments: TestTransport.allCases)
    func unused(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let counting = try CountingPort(on: bench)
            let far = try bench.farPort()
            let right = try bench.right(to: far)
            try right.send(counting.offer())
            try counting.expectSenders()
            var message: FarMessage? = try far.next()
            try counting.expectSenders()
            withExtendedLifetime(message) {}
            message = nil
            counting.notices.waitUntilCount(1)
            try right.send(counting.offer())
            try counting.ask()
            _ = try far.next()
            counting.notices.waitUntilCount(2)
            try counting.end()
        }
    }

    enum Stage: CaseIterable, Sendable { case unread, inQueue, received, used }

    @Test("a process that is killed with a right releases it", arguments: Stage.allCases)
    func killed(at stage: Stage) async throws {
        try await onBench(over: .process, endsAs: .signalled(9)) { bench in
            let counting = try CountingPort(on: bench)
            let far = try bench.farPort()
            try bench.right(to: far).send(counting.offer())
            switch stage {
            case .unread: break
            case .inQueue: try far.receiveFromSockets()
            case .received: _ = try far.retainNext()
            case .used: try bench.far.order(Order(.sendBack, far.retainNext(), numbers: [0]))
            }
            try counting.expectSenders()
            try bench.killFarSide()
            counting.notices.waitUntilCount(1)
            try counting.end()
        }
    }

    @Test("a right that a process passed on counts after that process was killed")
    func passedOn() async throws {
        try await onBench(over: .process, endsAs: .signalled(9)) { bench in
            try bench.besideAnotherProcess { third in
                let counting = try CountingPort(on: bench)
                let last = try third.farPort()
                let route = MachMessage(components: [.right(try last.makeSendRight())])
                let sender = FarSender(bench.far, try bench.far.order(Order(.connect), route).note.numbers[0])
                try sender.send(counting.offer())
                try bench.killFarSide()
                try counting.expectSenders()
                var message: FarMessage? = try last.next()
                try counting.expectSenders()
                withExtendedLifetime((message, sender)) {}
                message = nil
                counting.notices.waitUntilCount(1)
                try counting.end()
            }
        }
    }

    @Test("a right that a process has found by its address, and passed on, counts", arguments: [false, true])
    func announced(isUsed: Bool) async throws {
        try await onBench(over: .process) { bench in
            try bench.besideAnotherProcess { third in
                let port = try bench.farPort(isServed: true)
                let last = try third.farPort()
                try port.notifyWhenNoSenders()
                var own: SendRight? = SendRight(try bench.connect(to: port.address()))
                if isUsed { try own?.send(MachMessage()) }
                if let own { try last.makeSendRight().send(MachMessage(components: [.right(own)])) }
                own = nil
                for _ in 0..<3 { try port.settle() }
                #expect(try port.lines().isEmpty)
                _ = try last.next()
                #expect(try port.lines(1) == ["no senders"])
            }
        }
    }

    @Test("a connection that has announced a pipe passes messages as before", arguments: TestTransport.connected)
    func announcedBesideMessages(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.port(queueLimit: 1000), try bench.farPort())
            try port.notifyWhenNoSenders(on: .current) {}
            let (found, right) = (try bench.right(to: port), try bench.right(to: other))
            for id in 0..<200 {
                try found.send(MachMessage(id: Int32(id)))
                if id == 100 { try right.send(MachMessage(components: [.right(found)])) }
            }
            for id in 0..<200 { #expect(try port.next().id == Int32(id)) }
            let sockets = try #require(port.localPort.sockets)
            // It is on the socket, also where the messages are in the ring.
            while sockets.state.withLock({ $0.readEnds.isEmpty }) { #expect(try port.tryReceive()?.id == nil) }
            #expect(sockets.state.withLock { $0.readEnds.count } == 1)
            _ = try other.next()
        }
    }

    @Test("a right that has come back to its port's process counts there")
    func home() async throws {
        try await onBench(over: .process, endsAs: .signalled(9)) { bench in
            let counting = try CountingPort(on: bench)
            let home = try bench.port()
            let route = MachMessage(components: [.right(home.makeSendRight())])
            let sender = FarSender(bench.far, try bench.far.order(Order(.connect), route).note.numbers[0])
            try sender.send(counting.offer())
            try bench.killFarSide()
            try counting.expectSenders()
            var message: MachMessage? = try home.next()
            #expect(message?.rights == [counting.port.makeSendRight()])
            try counting.expectSenders()
            message = nil
            counting.notices.waitUntilCount(1)
            withExtendedLifetime(sender) {}
            try counting.end()
        }
    }

    @Test("rights that come and go need no more descriptors than those that stay")
    func generations() async throws {
        try await onBench(over: .process) { bench in
            let counting = try CountingPort(on: bench)
            let far = try bench.farPort()
            let right = try bench.right(to: far)
            func pass(_ count: Int) throws {
                for _ in 0..<count {
                    try right.send(counting.offer())
                    try bench.far.order(Order(.letGo, far.retainNext()))
                    for _ in 0..<3 { counting.port.localPort.receiveFromSockets() }
                }
            }
            try right.send(counting.offer())
            let first = try far.retainNext()
            try pass(100)  // some connections get rings
            let (mine, others) = (try openCount(), try bench.farDescriptorCount())
            try pass(100)
            try counting.expectSenders()
            #expect(try bench.farDescriptorCount() <= others + 1)
            #expect(try openCount() <= mine + 3)
            try bench.far.order(Order(.letGo, first))
            counting.notices.waitUntilCount(1)
            try counting.end()
        }
    }

    @Test(
        "each round of a right that is sent, used or not, and released ends with one notice", arguments: [false, true])
    func rounds(isUsed: Bool) async throws {
        try await onBench(over: .process) { bench in
            let counting = try CountingPort(on: bench)
            let far = try bench.farPort()
            let right = try bench.right(to: far)
            for round in 0..<60 {
                do {
                    let offered = counting.offer()
                    if round > 0 { try counting.ask() }
                    try right.send(offered)
                }
                let message = try far.retainNext()
                if isUsed { try bench.far.order(Order(.sendBack, message, numbers: [0])) }
                for _ in 0..<2 { counting.port.localPort.receiveFromSockets() }
                try counting.worker.perform {}
                #expect(counting.notices.value == round)
                try bench.far.order(Order(.letGo, message))
                counting.notices.waitUntilCount(round + 1)
            }
            try counting.end()
        }
    }

    @Test("a right that was found by its address counts when a task, or a reply, passes it on")
    func announcedOtherwise() async throws {
        try await onBench(over: .process) { bench in
            let (counting, home) = (try CountingPort(on: bench), try bench.port())
            let address = try counting.port.localPort.address(in: bench.directory)
            let other = try bench.farPort()
            let right = try bench.right(to: other)
            do {
                let found = SendRight(try bench.connect(to: address))
                let sent = Counter("messages of a task")
                Task {
                    _ = try? await right.request(
                        MachMessage(components: [.right(found)]), sendLimit: longTimeout, replyLimit: .zero)
                    sent.increment()
                }
                sent.waitUntilCount(1)
            }
            let kept = try other.retainNext()
            try counting.expectSenders()
            try bench.far.order(Order(.letGo, kept))
            counting.notices.waitUntilCount(1)
            let requester = try bench.farSender(to: home)
            try requester.beginRequest(MachMessage(id: 1))
            do {
                let found = SendRight(try bench.connect(to: address))
                try counting.ask()
                try home.next().reply(MachMessage(id: 2, components: [.right(found)]))
                #expect(try found.export() != nil)
            }
            counting.notices.waitUntilCount(2)
            try counting.end()
        }
    }

    @Test("a process has one descriptor for all rights to a port that came with ends of one pipe")
    func shared() async throws {
        try await onBench(over: .process) { bench in
            let counting = try CountingPort(on: bench)
            let far = try bench.farPort()
            let right = try bench.right(to: far)
            for _ in 0..<100 { _ = try bench.farDescriptorCount() }  // some connections get rings
            let kept = counting.port.makeSendRight()
            for _ in 0..<30 {
                try right.send(MachMessage(components: [.right(kept)]))
                _ = try far.retainNext()
            }
            let before = try bench.farDescriptorCount()
            for _ in 0..<30 {
                try right.send(MachMessage(components: [.right(kept)]))
                _ = try far.retainNext()
            }
            #expect(try bench.farDescriptorCount() <= before)
            try counting.end()
        }
    }

    /// How many descriptors this process has, once those of what was released are closed.
    private func openCount() throws -> Int {
        waitUntilDescriptorsAreClosed()
        return try sysList("/proc/self/fd").count
    }

    @Test("a port that was not asked for the notice sends rights as addresses, and needs no descriptors")
    func unasked() async throws {
        try await onBench(over: .socket) { bench in
            let (port, other) = (try bench.port(), try bench.port())
            let right = try bench.right(to: other)
            for _ in 0..<10 {
                try right.send(MachMessage())
                _ = try other.next()
            }
            let message = MachMessage(components: [.right(port.makeSendRight())])
            try expectNoNewDescriptors {
                #expect(try OutgoingMessage(message).descriptors.isEmpty)
                try right.send(message)
            }
            #expect(try other.next().rights == message.rights)
        }
    }

    @Test("the ends of pipes are among a message's descriptors, one for each port")
    func limit() async throws {
        try await onBench(over: .socket) { bench in
            let ports = try (0..<2).map { _ in try CountingPort(on: bench) }
            let file = SharedDescriptor(try sysOpen("/dev/null", .reading))
            let files = [MachMessage.Component](repeating: .descriptor(file), count: MessageLimits.descriptors - 1)
            let rights = ports.map { MachMessage.Component.right($0.port.makeSendRight()) }
            let both = MachMessage(components: files + rights)
            let error = portError { () throws(PortError) in _ = try OutgoingMessage(both) }
            #expect(error?.code == .tooManyDescriptors)
            let one = try OutgoingMessage(MachMessage(components: files + [rights[0], rights[0]]))
            #expect(one.descriptors.count == MessageLimits.descriptors)
            for port in ports { try port.end() }
        }
    }
}

extension FarPort {
    /// Has the far side receive a message and retain it: of its rights none comes here.
    func retainNext() throws -> Int32 {
        try link.order(Order(.receive, number, numbers: [2])).note.numbers.map { Int32($0) }[0]
    }
}
