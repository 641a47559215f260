// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Rights that came in messages of other processes, before and when they are used.
@Suite("rights that arrive", .contract) struct ReceivedRightTests {
    /// The only right of the next message.
    private func arrived(of address: PortAddress, at port: MachPort, on bench: Bench) throws -> SendRight {
        try bench.right(to: port).send(MachMessage(components: [.right(SendRight(DeadPort(address)))]))
        return try #require(try port.next().rights.first)
    }

    @Test("receiving rights needs neither a descriptor nor a connection, however many there are")
    func untouched() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            #expect(try port.tryReceive()?.id == nil)
            let listeners = try (0..<3).map { try RawListener("\(bench.directory.path)/\($0)") }
            let live = listeners.map { SendRight(DeadPort($0.address)) }
            let dead = (3..<MessageLimits.rights).map {
                SendRight(DeadPort(PortAddress(path: "\(bench.directory.path)/\($0)")))
            }
            let message = try expectNoNewDescriptors {
                try right.send(MachMessage(components: (live + dead).map { .right($0) }))
                return try port.next()
            }
            #expect(Set(message.rights).count == MessageLimits.rights)
            for listener in listeners {
                #expect(try sysPoll(listener.socket.rawValue, .readable, until: .distantPast).isEmpty)
            }
            withExtendedLifetime(listeners) {
                #expect(message.rights.map(\.isDead) == live.map { _ in false } + dead.map { _ in true })
            }
        }
    }

    @Test("a message with more rights than its limit is not sent, and refused when it comes all the same")
    func tooMany() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = SendRight(DeadPort(PortAddress(path: "/nobody/is/there")))
            let many = MachMessage(
                components: Array(repeating: .right(right), count: MessageLimits.rights), replyPort: right)
            let error = portError { () throws(PortError) in _ = try OutgoingMessage(many) }
            #expect(error?.code == .messageTooLarge && error?.delivery == .notSent)
            #expect(error?.subject == .size(MessageLimits.rights + 1, limit: MessageLimits.rights, of: .rights))
            var header = PacketHeader(kind: .message, componentCount: UInt32(MessageLimits.rights + 1))
            let record: [UInt8] = [2, 0, 0, 0, 2, 0, 0, 0, 0x2F, 0x61]
            let payload = Array(repeatElement(record, count: MessageLimits.rights + 1).joined())
            header.totalLength = UInt64(payload.count)
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(header, payload)
            #expect(try port.tryReceive()?.id == nil)
            #expect(try peer.next()?.kind == .refused)
        }
    }

    @Test(
        "an address that could be spelled in another way is no address",
        arguments: ["a", "", "/", "//a", "/a//b", "/a/", "/a/./b", "/a/../b", "/.", "/a/..", "/a\0b"])
    func spelling(path: String) {
        #expect(PortAddress(received: path) == nil)
        #expect(PortAddress(received: "/a/.b/..c/d.")?.path == "/a/.b/..c/d.")
        #expect(PortAddress(received: "/" + String(repeating: "a", count: 4094)) != nil)
        #expect(PortAddress(received: "/" + String(repeating: "a", count: 4095)) == nil)
    }

    @Test("a directory is opened under one spelling of its path, and not under one that leads up")
    func directory() throws {
        try withScratchDirectory { scratch in
            let plain = try PortDirectory.open(path: scratch.path("ports"))
            let odd = try PortDirectory.open(path: "/" + scratch.path + "/.//ports/./")
            #expect(odd.path == plain.path)
            let error = portError { () throws(PortError) in _ = try PortDirectory.open(path: scratch.path("x/../ports"))
            }
            #expect(error?.code == .directoryUntrusted)
        }
    }

    @Test("a right to a port whose backlog is full arrives alive, and serves when there is room")
    func busy() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let listener = try RawListener("\(bench.directory.path)/busy", backlog: 0)
            let first = SharedDescriptor(try sysPacketSocket())
            #expect(try sysConnect(first.rawValue, path: listener.address.path))
            let right = try arrived(of: listener.address, at: port, on: bench)
            #expect(!right.isDead)
            #expect(try !right.trySend(MachMessage()))
            let notified = Counter("send-possible notices")
            try right.notifyWhenSendPossible(on: .current) { _ in notified.increment() }  // the request is not retained
            let deadline = Watchdog.deadline
            while notified.value == 0, .now < deadline { ThreadRunLoop.current.run(for: .milliseconds(20)) }
            #expect(notified.value == 1)
            let sender = runOnThread { try right.send(MachMessage(id: 4)) }
            _ = try listener.accept()
            let peer = try listener.accept()
            try sender.join()
            #expect(try peer.next()?.messageID == 4)
            #expect(try arrived(of: listener.address, at: port, on: bench) == right)
        }
    }

    @Test("a request, and a task, wait for room in a backlog that is full")
    func busyRequests() async throws {
        try await withScratchDirectory { scratch in
            let directory = try PortDirectory.open(path: scratch.path("ports"))
            let listener = try RawListener("\(directory.path)/busy", backlog: 0)
            let first = SharedDescriptor(try sysPacketSocket())
            #expect(try sysConnect(first.rawValue, path: listener.address.path))
            let right = RightsTable.shared.right(receivedAt: listener.address)
            async let reply = right.request(MachMessage(id: 4), sendLimit: longTimeout, replyLimit: longTimeout)
            // The task has found no room when it comes here, or finds some later: both are served.
            _ = try listener.accept()
            let peer = try listener.accept()
            let request = try #require(try peer.next())
            #expect(request.messageID == 4)
            try peer.send(MachMessage(id: 5), answers: request.asks)
            #expect(try await reply.id == 5)
        }
    }

    @Test("threads that use a right for the first time at once share one connection")
    func race() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            for round in 0..<20 {
                let listener = try RawListener("\(bench.directory.path)/race\(round)")
                let right = try arrived(of: listener.address, at: port, on: bench)
                let start = Gate("the start of a race")
                let users = (0..<2).map { index in
                    runOnThread {
                        start.wait()
                        // The listener answers no second sender that asks for room.
                        if index == 0 { #expect(!right.isDead) } else { try right.send(MachMessage(id: 1)) }
                        return ObjectIdentifier(try #require(right.destination as? RemotePort).reached())
                    }
                }
                start.open()
                let used = try users.map { try $0.join() }
                #expect(used[0] == used[1])
            }
        }
    }

    @Test("the dead-name notice for a right that was never used reports a dead port, and a later end")
    func notices() async throws {
        try await onBench(over: .socket) { bench in
            let (port, other, notified) = (try bench.port(), try bench.port(), Counter("dead-name notices"))
            let listener = try RawListener("\(bench.directory.path)/ends")
            let dead = try arrived(of: PortAddress(path: "/nobody/is/there"), at: port, on: bench)
            let later = try arrived(of: listener.address, at: other, on: bench)
            try dead.notifyWhenDead(on: .current) { _ in notified.increment() }
            try later.notifyWhenDead(on: .current) { _ in notified.increment() }
            _ = ThreadRunLoop.current.run(mode: .default, until: Watchdog.deadline, while: { notified.value < 1 })
            #expect(notified.value == 1 && dead.isDead && !later.isDead)
            let peer = try listener.accept()
            withExtendedLifetime(peer) { sysShutDown(peer.socket.rawValue) }
            _ = ThreadRunLoop.current.run(mode: .default, until: Watchdog.deadline, while: { notified.value < 2 })
            #expect(notified.value == 2 && later.isDead)
        }
    }
}
