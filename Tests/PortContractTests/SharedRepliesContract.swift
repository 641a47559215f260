// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("replies that the shared thread receives", .tasks) struct SharedRepliesContract {
    @Test(
        "a port that ends leaves the connection of another port alone, over which it awaits a reply to a reply",
        arguments: TestTransport.connected)
    func replyToReply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let waiting = MachPort()
            let handler: MachPort.Handler = { _, message in
                let answer = message.id == 1 ? MachMessage(id: 2, replyTo: waiting) : MachMessage(id: message.id + 1)
                try? message.reply(answer)
            }
            try bench.serving(handler) { right, _, _ in
                let answer = try right.ask(MachMessage(id: 1))
                #expect(answer.id == 2 && answer.expectsReply)
                waiting.invalidate()
                #expect(try right.ask(MachMessage(id: 3)).id == 4)
                #expect(!right.isDead)
            }
        }
    }

    @Test(
        "a request that was handed on is answered though another request over that right ends first",
        arguments: TestTransport.connected)
    func handedOn(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.keepSeven) { far, port in
                let near = MachPort { _, message in
                    var onward = MachMessage(id: 7)
                    if let right = message.takeReplyRight() { onward.setReplyRight(right) }
                    try? far.send(onward)
                }
                let worker = Worker("near")
                try near.schedule(on: worker.loop)
                let right = near.makeSendRight()
                let asker = runOnThread { try right.ask(MachMessage(id: 1)).id }
                #expect(try port.lines(1) == ["retained 7"])
                let others = Recorder<Int32>("replies to tasks")
                Task { others.append(try await far.request(MachMessage(id: 3)).id) }
                #expect(others.waitUntilCount(1) == [2])
                try port.replyRetained(MachMessage(id: 70))
                #expect(try asker.join() == 70)
                near.invalidate()
                try worker.end()
            }
        }
    }

    @Test("a request that begins while the last one ends is listened for")
    func beginsBesideEnd() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let remote = try #require(try bench.right(to: port).destination as? RemotePort)
            let worker = Worker()
            let loop = worker.loop
            let (steps, rounds) = (Steps(), 100)
            // Whether the source of the connection's replies is in the loop, for each round.
            let other = runOnThread {
                for number in 1...rounds {
                    while steps.begun.load(ordering: .acquiring) < number { sched_yield() }
                    remote.endReplies(on: loop, in: .default, to: UnusedReceiver())
                    steps.ended.store(number, ordering: .releasing)
                }
            }
            var unscheduledCount = 0
            for number in 1...rounds {
                try remote.beginReplies(on: loop, in: .default)
                steps.begun.store(number, ordering: .releasing)
                try remote.beginReplies(on: loop, in: .default)
                while steps.ended.load(ordering: .acquiring) < number { sched_yield() }
                if let source = try remote.reached().replySource(), !loop.contains(source, in: .default) {
                    unscheduledCount += 1
                }
                remote.endReplies(on: loop, in: .default, to: UnusedReceiver())
            }
            try other.join()
            #expect(unscheduledCount == 0)
            if let source = try remote.reached().replySource() { #expect(!loop.contains(source, in: .default)) }
            try worker.end()
        }
    }

    /// How far two threads have come.
    private final class Steps: Sendable {
        let begun = Atomic<Int>(0)
        let ended = Atomic<Int>(0)
    }
}
