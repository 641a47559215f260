// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Tests of suites without a leak check may have unflushed replies at the same time, and release them. So these tests
// expect none only of a count that is the test's own, and wait as long as the watchdog.

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Waiting until what this process has replied is sent.
@Suite("flushing replies", .tasks) struct FlushTests {
    @Test("a flush waits until a requester has read its reply, also that of a port that has ended")
    func waits() async throws {
        try await onBench(over: .socket) { bench in
            let (peer, size) = try bench.keepingReply()
            #expect(!MachPort.flushReplies(within: .zero))
            let reader = runOnThread { try peer.readMessage() }
            #expect(MachPort.flushReplies(within: longTimeout))
            #expect(try reader.join() == size)
        }
    }

    @Test("a flush in a task waits, too, and ends when it is cancelled")
    func waitsInTask() async throws {
        try await onBench(over: .socket) { bench in
            let (peer, size) = try bench.keepingReply()
            let outcomes = Recorder<Bool>()
            let cancelled = Task { outcomes.append(await MachPort.flushReplies(within: longTimeout)) }
            cancelled.cancel()
            #expect(outcomes.waitUntilCount(1) == [false])
            Task { outcomes.append(await MachPort.flushReplies(within: longTimeout)) }
            #expect(try peer.readMessage() == size)
            #expect(outcomes.waitUntilCount(2) == [false, true])
        }
    }

    @Test("a flush does not wait for a requester that has gone")
    func requesterGoes() async throws {
        try await onBench(over: .socket) { bench in
            do {
                let (peer, _) = try bench.keepingReply()
                #expect(!MachPort.flushReplies(within: .zero))
                withExtendedLifetime(peer) {}
            }
            #expect(MachPort.flushReplies(within: longTimeout))
        }
    }

    @Test("a flush does not wait for a connection that was ended because its requester reads nothing")
    func endedConnection() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1), asks: 1)
            try port.next().reply(MachMessage(bytes: pattern(1 << 20)))
            let connection = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            #expect(!MachPort.flushReplies(within: .zero))
            connection.sender.endBecauseUnread(connection)
            #expect(MachPort.flushReplies(within: longTimeout))
            withExtendedLifetime(peer) {}
        }
    }

    @Test("a handler may flush the reply that it has just given", arguments: [TestTransport.memory, .socket, .ring])
    func inHandler(transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let outcomes = Recorder<Bool>()
            try bench.serving({ _, message in
                try? message.reply(MachMessage(bytes: pattern(8 << 20)))
                outcomes.append(MachPort.flushReplies(within: longTimeout))
            }) { right, _, _ in
                let reply = try right.ask(MachMessage(id: 1))
                #expect(reply.bytes == pattern(8 << 20))
            }
            #expect(outcomes.elements == [true])
        }
    }

    @Test("a flush is woken by the last connection that has unflushed replies, and not before")
    func last() throws {
        let replies = UnflushedReplies()
        #expect(replies.waitUntilSent(until: .distantPast))
        replies.enter()
        replies.enter()
        replies.leave()
        #expect(!replies.waitUntilSent(until: .distantPast))
        let ended = Recorder<Bool>("waits")
        let waiter = runOnThread { ended.append(replies.waitUntilSent(until: Watchdog.deadline)) }
        replies.enter()
        replies.leave()
        #expect(ended.count == 0)
        replies.leave()
        try waiter.join()
        #expect(ended.elements == [true])
        #expect(replies.waitUntilSent(until: .distantPast))
    }

    @Test("a connection that comes and goes many times during a flush leaves no thread waiting")
    func race() throws {
        let replies = UnflushedReplies()
        let changer = runOnThread {
            for _ in 0..<20_000 {
                replies.enter()
                replies.leave()
            }
        }
        var count = 0
        while count < 20_000, replies.waitUntilSent(until: Watchdog.deadline) { count += 1 }
        try changer.join()
        #expect(count == 20_000)
        #expect(replies.waitUntilSent(until: .distantPast))
    }

    @Test("a flush of one reply is not woken by another that went out before it began")
    func stale() throws {
        let replies = UnflushedReplies()
        let isOver = Gate("the end")
        let changer = runOnThread {
            while !isOver.isOpen {
                replies.enter()
                replies.leave()
            }
        }
        var wokenCount = 0
        for _ in 0..<20_000 {
            replies.enter()
            if replies.waitUntilSent(until: .distantPast) { wokenCount += 1 }
            replies.leave()
        }
        isOver.open()
        try changer.join()
        #expect(wokenCount == 0)
    }

    #if PORT_FAULTS
    @Test("a flush waits for a reply of a port that has ended, also where the kernel cannot wait for room")
    func noDescriptor() async throws {
        try await onBench(over: .socket) { bench in
            let (port, peer, message) = try bench.portWithRequest()
            let rules = [SystemCallFaults.Rule(.epoll_ctl, .fail(ENOSPC), times: .max)]
            let (_, hits) = try SystemCallFaults.with(rules) { try message.reply(MachMessage(bytes: pattern(1 << 20))) }
            port.invalidate()
            #expect(hits > 0)
            #expect(!MachPort.flushReplies(within: .zero))
            #expect(try peer.readMessage() == 1 << 20 + 8)
            #expect(MachPort.flushReplies(within: longTimeout))
        }
    }
    #endif

    @Test("a forked child has none of its parent's replies to wait for")
    func forked() async {
        await #expect(processExitsWith: .success) {
            try await onBench(over: .socket) { bench in
                let (peer, size) = try bench.keepingReply()
                let child = try forking { MachPort.flushReplies(within: .zero) ? [] : ["it waits for its parent's"] }
                #expect(exitStatus(of: child) == 0)
                #expect(!MachPort.flushReplies(within: .zero))
                #expect(try peer.readMessage() == size)
                #expect(MachPort.flushReplies(within: longTimeout))
            }
        }
    }
}

extension Bench {
    /// A client that does not read, and the size of a reply of which most is still unflushed. The port has ended.
    fileprivate func keepingReply() throws -> (RawPeer, Int) {
        let port = try port()
        let peer = try RawPeer(to: port, on: self)
        try peer.send(MachMessage(id: 1), asks: 1)
        try port.next().reply(MachMessage(bytes: pattern(1 << 20)))
        port.invalidate()
        return (peer, 1 << 20 + 8)
    }
}
