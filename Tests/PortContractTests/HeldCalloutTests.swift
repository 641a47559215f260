// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

// A port forwards a request over a connection, and the reply comes over that connection. What the reply ends is the
// program's: the handler of the request's cancellation, and the wait of a task.
@Suite("Callouts while a connection is being read", .tasks) struct HeldCalloutTests {
    /// Acquires the receiver's lock in each of a program's callouts: a thread that has it already traps.
    private final class Finding: Sendable {
        let connection: SocketConnection
        let looks = Atomic<Int>(0)
        let ended = Gate("the end of what a handler captures")

        init(_ connection: SocketConnection) { self.connection = connection }

        func look() {
            connection.receiver.state.withLock { _ in }
            looks.add(1, ordering: .relaxed)
        }
    }

    /// What a program's handler captures.
    private final class Session: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        deinit { body() }
    }

    /// Ports on two threads: the first forwards its requests to the second, which replies.
    private func withForwarder(
        on bench: Bench, _ body: (_ port: MachPort, _ right: SendRight, _ finding: Finding) throws -> Void
    ) throws {
        let (middle, server) = (Worker("middle"), Worker("server"))
        let last = try bench.port { _, message in try? message.reply(MachMessage(id: 3)) }
        try last.schedule(on: server.loop)
        let right = try bench.right(to: last)
        #expect(try right.request(MachMessage(id: 1)).id == 3)
        let finding = Finding(try #require((right.destination as? RemotePort)?.connection))
        let port = try bench.port { _, message in
            let session = Session {
                finding.look()
                // A program says goodbye to its server.
                #expect(throws: Never.self) { try right.send(MachMessage(id: 9), within: longTimeout) }
                finding.ended.open()
            }
            message.setCancellationHandler(on: middle.loop) { withExtendedLifetime(session) {} }
            guard let reply = message.takeReplyRight() else { return }
            var forwarded = MachMessage(id: 2)
            forwarded.setReplyRight(reply)
            try? right.send(forwarded, within: longTimeout)
        }
        try port.schedule(on: middle.loop)
        try body(port, right, finding)
        port.invalidate()
        last.invalidate()
        try middle.end()
        try server.end()
    }

    @Test(
        "a cancellation handler is released without the lock, and what it captures may use the connection",
        arguments: [TestTransport.socket, .ring], [false, true])
    func handler(over transport: TestTransport, isRequesterLocal: Bool) async throws {
        try await onBench(over: transport) { bench in
            try withForwarder(on: bench) { port, _, finding in
                let own = isRequesterLocal ? port.makeSendRight() : try bench.right(to: port)
                #expect(try own.request(MachMessage(id: 1), replyLimit: longTimeout).id == 3)
                finding.ended.wait()
                #expect(finding.looks.load(ordering: .relaxed) == 1)
            }
        }
    }

    /// Looks whenever it gets a job.
    private final class LookingExecutor: TaskExecutor {
        let (inner, finding): (any TaskExecutor, Finding)

        init(_ inner: any TaskExecutor, _ finding: Finding) { (self.inner, self.finding) = (inner, finding) }

        func enqueue(_ job: consuming ExecutorJob) {
            finding.look()
            inner.enqueue(job)
        }
    }

    @Test("a task is resumed without the lock", arguments: [TestTransport.socket, .ring])
    func task(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try withForwarder(on: bench) { port, right, finding in
                let thread = try ResidentThread(name: "executor")
                let executor = LookingExecutor(thread.loop, finding)
                for right in [port.makeSendRight(), right] {
                    let done = Gate("the task")
                    Task(executorPreference: executor) {
                        for _ in 0..<20 { #expect((try? await right.request(MachMessage(id: 1)))?.id == 3) }
                        done.open()
                    }
                    done.wait()
                }
                #expect(finding.looks.load(ordering: .relaxed) > 20)
                thread.stop()
                thread.join()
            }
        }
    }
}
