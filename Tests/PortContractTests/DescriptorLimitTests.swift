// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// What a process that has no descriptor left reports to its peers.
@Suite("ports without a descriptor left", .contract) struct DescriptorLimitTests {
    typealias Rule = SystemCallFaults.Rule

    @Test(
        "a client that cannot be accepted because no descriptor is left is refused at once, and the next one is served")
    func acceptAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let refused = try bench.right(to: port)
            let (message, hits) = try SystemCallFaults.with([Rule(.accept, .fail(EMFILE))]) { try port.tryReceive() }
            #expect(message?.id == nil)
            #expect(hits == 1)
            let error = portError { () throws(PortError) in _ = try refused.ask(MachMessage()) }
            #expect(error?.code == .descriptorLimit && error?.delivery == .notSent)
            #expect(error.map { "\($0)" }?.contains("the other process") == true)
            let right = try bench.right(to: port)
            try right.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
        }
    }

    @Test("a right arrives also where there is no descriptor to reach it with, and serves when there is one")
    func rightAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let elsewhere = try RawListener("\(bench.directory.path)/elsewhere")
            let mine = SendRight(DeadPort(elsewhere.address))
            try right.send(MachMessage(id: 1, components: [.right(mine)]))
            let (message, received) = try SystemCallFaults.with([Rule(.socket, .fail(EMFILE))]) { try port.next() }
            #expect(message.id == 1 && received == 0)
            let arrived = try #require(message.rights.first)
            let (errors, hits) = SystemCallFaults.with([Rule(.socket, .fail(EMFILE), times: 4)]) {
                [
                    portError { () throws(PortError) in try arrived.send(MachMessage()) },
                    portError { () throws(PortError) in _ = try arrived.ask(MachMessage()) },
                    portError { () throws(PortError) in _ = try arrived.notifyWhenDead(on: .current) { _ in } },
                    portError { () throws(PortError) in _ = try arrived.notifyWhenSendPossible(on: .current) { _ in } },
                ]
            }
            #expect(errors.map { $0?.code } == Array(repeating: .descriptorLimit, count: 4) && hits == 4)
            #expect(errors.allSatisfy { $0?.delivery == .notSent })
            let (isDead, _) = SystemCallFaults.with([Rule(.socket, .fail(EMFILE))]) { arrived.isDead }
            #expect(!isDead)
            try arrived.send(MachMessage(id: 5))
            #expect(try elsewhere.accept().next()?.messageID == 5)
        }
    }

    @Test("a reply whose descriptors the kernel does not pass at the moment is lost, and the requester learns why")
    func replyInFlightLimit() async throws {
        try await onBench(over: .socket) { bench in
            let (port, pipe) = (try bench.port(), try TestPipe())
            let right = try bench.right(to: port)
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) } }
            let message = try port.next()
            let (error, hits) = SystemCallFaults.with([Rule(.sendmsg, .fail(ETOOMANYREFS))]) {
                portError { () throws(PortError) in
                    try message.reply(MachMessage(components: [.descriptor(pipe.reading)]))
                }
            }
            #expect(hits == 1 && error?.code == .descriptorsInFlight)
            let requestError = try requester.join()
            #expect(requestError?.code == .descriptorsLost && requestError?.delivery == .read)
        }
    }

    @Test(
        "a user whose descriptors nobody receives can send no more than a process may have: the error says so",
        .enabled(if: sysUserID() == 0, "only root can become another user"))
    func inFlight() async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/raw")
            let remote = try #require(try RightsTable.connect(to: listener.address))
            let connection = try remote.reached()
            connection.sender.credit.setUnlimited()
            let (right, peer, pipe) = (SendRight(remote), try listener.accept(), try TestPipe())
            let message = MachMessage(components: Array(repeating: .descriptor(pipe.writing), count: 50))
            let error = try withDescriptorLimit(200) {
                try onNewThread { () throws -> PortError? in
                    // Of this thread alone: the kernel counts what each user has on the way, but not root's.
                    try #require(becomeUserInThread(65_534))
                    for _ in 0..<20 {
                        if let error = portError({ () throws(PortError) in try right.send(message) }) { return error }
                    }
                    return nil
                }
            }
            #expect(error?.code == .descriptorsInFlight && error?.systemError?.code == ETOOMANYREFS)
            #expect(error?.delivery == .notSent)
            while try sysPoll(peer.socket.rawValue, .readable, until: .distantPast) != [] { _ = try peer.next() }
            try right.send(message)
            #expect(try peer.nextPacket()?.descriptors.count == 50)
        }
    }

    /// Becomes another user in the calling thread; the library's call would do so in all.
    private func becomeUserInThread(_ user: CLong) -> Bool {
        typealias SystemCall = @convention(c) (CLong, CLong, CLong, CLong) -> CLong
        guard let address = unsafe dlsym(nil, "syscall") else { return false }
        // SAFETY: it takes its arguments as registers, however many.
        let call = unsafe unsafeBitCast(address, to: SystemCall.self)
        return call(117, user, user, user) == 0 || call(147, user, user, user) == 0
    }

    @Test("a request that is unread when its client is refused because no descriptor is left gets that error")
    func unreadAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let refused = try bench.right(to: port)
            let waits = Gate("a requester waits")
            let requester = runOnThread {
                waitsNow(in: .portReply, waits)
                return portError { () throws(PortError) in _ = try refused.ask(MachMessage()) }
            }
            waits.wait()
            let (message, hits) = try SystemCallFaults.with([Rule(.accept, .fail(EMFILE))]) { try port.tryReceive() }
            #expect(message?.id == nil && hits == 1)
            let error = try requester.join()
            #expect(error?.code == .descriptorLimit && error?.delivery == .unread)
        }
    }

    @Test(
        "a reply waits behind an unflushed one whose descriptors the kernel does not pass at the moment"
    )
    func replyBehindUnflushed() async throws {
        try await onBench(over: .socket) { bench in
            let (port, pipe) = (try bench.port(), try TestPipe())
            let peer = try RawPeer(to: port, on: bench)
            for id in Int32(1)...3 { try peer.send(MachMessage(id: id), asks: UInt64(id)) }
            let messages = [try port.next(), try port.next(), try port.next()]
            let sockets = try #require(port.localPort.sockets)
            let connection = try #require(sockets.state.withLock { $0.members.values.first })
            connection.sender.backlog.withLock { $0.isWatched = true }  // the I/O thread does not touch it
            try messages[0].reply(MachMessage(bytes: pattern(300_000)), within: .zero)
            try messages[1].reply(MachMessage(id: 2, components: [.descriptor(pipe.reading)]), within: .zero)
            #expect(connection.isAwaitingRoom)
            while try sysPoll(peer.socket.rawValue, .readable, until: .distantPast) != [] { _ = try peer.next() }
            let (error, hits) = SystemCallFaults.with([Rule(.sendmsg, .fail(ETOOMANYREFS))]) {
                portError { () throws(PortError) in try messages[2].reply(MachMessage(id: 3)) }
            }
            #expect(error == nil && hits == 1)
            var rest: [PacketHeader] = []
            while rest.last?.answers != 3 { rest.append(try #require(try peer.next())) }
            #expect(rest.map(\.kind) == [.continuation, .message, .message])
            #expect(rest.map(\.answers) == [0, 2, 3])
        }
    }

    @Test("F-B3: a paused connection that the kernel refuses to watch again is read when the kernel accepts it")
    func notWatchedAgain() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.limitedPort { $0.queuedBytes = 1 }
            try {
                let peer = try RawPeer(to: port, on: bench)
                for id in Int32(0)..<4 { try peer.send(MachMessage(id: id, bytes: [1])) }
                port.localPort.receiveFromSockets()
            }()
            port.localPort.receiveFromSockets()  // the end of the peer, which is paused
            let sockets = try #require(port.localPort.sockets)
            #expect(sockets.state.withLock { $0.unwatched.count } == 1)
            let (first, hits) = SystemCallFaults.with([Rule(.epoll_ctl, .fail(ENOSPC))]) { port.localPort.receive() }
            #expect(first?.id == 0 && hits == 1)
            // No thread receives, and it still comes back.
            #expect(try sysPoll(sockets.rawValue, .readable, until: Watchdog.deadline) == .readable)
            for id in Int32(1)..<4 { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
            #expect(port.localPort.connectionCount == 0)
        }
    }

    @Test(
        "a connection that the kernel cannot watch is refused because no descriptor is left, and the next one is served"
    )
    func unwatchable() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let peer = try RawPeer(to: port, on: bench)
            let (message, hits) = try SystemCallFaults.with([Rule(.epoll_ctl, .fail(ENOSPC))]) {
                try port.tryReceive()
            }
            #expect(message?.id == nil && hits == 1)
            let refusal = try peer.next()
            #expect(refusal?.kind == .refused)
            #expect(refusal?.messageID == Int32(PortError.Code.descriptorLimit.rawValue))
            #expect(try peer.next() == nil)
            #expect(port.localPort.connectionCount == 0)
            let next = try RawPeer(to: port, on: bench)
            try next.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
        }
    }
}

#endif
