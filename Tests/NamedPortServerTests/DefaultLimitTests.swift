// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A port that records until when its senders would wait, and replies at once.
private final class DeadlineRecorder: PortEndpoint {
    let deadlines = Mutex<[MonotonicInstant]>([])

    private func record(_ deadline: MonotonicInstant, _ message: MachMessage) {
        deadlines.withLock { $0.append(deadline) }
        try? message.reply(MachMessage(content: 7))
    }

    func send(_ offered: inout MachMessage?, until deadline: SendDeadline) throws(PortError) {
        if let message = offered.take() { record(deadline.instant, message) }
    }

    nonisolated(nonsending) func send(_ message: MachMessage, waiting wait: TaskWaiter) async throws(PortError) {
        record(wait.deadline, message)
    }

    var label: String { "a recorder" }
    func checkProcess() throws(PortError) {}
    func pollDeath() -> Bool { false }
    func address() throws(PortError) -> PortAddress { .nowhere }
    func awaitDeath(_ notice: DeathNotice) throws(PortError) -> Cancellation { {} }
    func awaitRoom(_ notice: LoopNotification<SendPossibility>) throws(PortError) {}
    func beginReplies(on loop: ThreadRunLoop, in mode: RunLoopMode) throws(PortError) {}
    func endReplies(on loop: ThreadRunLoop, in mode: RunLoopMode, to receiver: any ReplyReceiver) {}
}

/// The limits that a caller leaves out. No test waits for one: the deadline is what is compared.
@Suite("Default limits", .leakCheck(settles: true, warmingUp: makeSpareDescriptor)) struct DefaultLimitTests {
    /// The default of the limits of sending and of replies, as Docs/Limits.md has it.
    private static func documented(_ name: String) throws -> Duration {
        let row = try #require(try Document("Docs/Limits.md").tableRows.first { $0.count > 2 && $0[1] == "`\(name)`" })
        return .seconds(try #require(Int(row[2].prefix { $0 != " " })))
    }

    @Test("a request and a remote port's message wait for room for as long as the page says, from the call on")
    func sending() async throws {
        let limit = try Self.documented("sendLimit")
        try await onNewThread {
            let port = DeadlineRecorder()
            let right = SendRight(port)
            let remote = RemoteMessagePort(name: "name", right: right)
            let own = MachPort()
            let calls: [(String, () throws -> Void)] = [
                ("request", { _ = try right.request(MachMessage()) }),
                ("value", { let _: Int = try right.request(7) }),
                ("remote request", { try remote.request(MachMessage()) }),
                ("remote send", { try remote.send(MachMessage()) }),
                ("check-in", { try right.checkIn(own) }),
            ]
            for (name, call) in calls {
                let before = MonotonicInstant.now
                try call()
                let after = MonotonicInstant.now
                let deadline = try #require(port.deadlines.withLock { $0.popLast() })
                #expect(deadline >= before.advanced(by: limit) && deadline <= after.advanced(by: limit), "\(name)")
            }
        }
    }

    @Test("so do their forms for tasks")
    func sendingInTasks() async throws {
        let limit = try Self.documented("sendLimit")
        let port = DeadlineRecorder()
        let right = SendRight(port)
        let remote = RemoteMessagePort(name: "name", right: right)
        let own = MachPort()
        let calls: [(String, @Sendable () async throws -> Void)] = [
            ("request", { _ = try await right.request(MachMessage()) }),
            ("value", { let _: Int = try await right.request(7) }),
            ("remote request", { try await remote.request(MachMessage()) }),
            ("remote send", { try await remote.send(MachMessage()) }),
            ("check-in", { try await right.checkIn(own) }),
        ]
        for (name, call) in calls {
            let before = MonotonicInstant.now
            try await call()
            let after = MonotonicInstant.now
            let deadline = try #require(port.deadlines.withLock { $0.popLast() })
            #expect(deadline >= before.advanced(by: limit) && deadline <= after.advanced(by: limit), "\(name)")
        }
    }

    @Test("a reply is waited for as long as the page says, from when the request was sent")
    func replies() async throws {
        let limit = try Self.documented("replyLimit")
        try await onNewThread {
            let port = MachPort { _, message in try? message.reply(MachMessage(content: 7)) }
            try withLoopThread { loop in
                try port.schedule(on: loop)
                let right = port.makeSendRight()
                let remote = RemoteMessagePort(name: "name", right: right)
                let calls: [(String, () throws -> Void)] = [
                    ("request", { _ = try right.request(MachMessage()) }),
                    ("value", { let _: Int = try right.request(7) }),
                    ("remote request", { try remote.request(MachMessage()) }),
                ]
                for (name, call) in calls {
                    let tracer = RunLoopTracer()
                    tracer.attach(to: .current)
                    let before = MonotonicInstant.now
                    try call()
                    let after = MonotonicInstant.now
                    tracer.detach(from: .current)
                    let deadlines = tracer.events.compactMap { event -> MonotonicInstant? in
                        if case .runBegin(let deadline) = event.kind, event.mode == .portReply { deadline } else { nil }
                    }
                    // A reply that has come before the wait begins needs no run.
                    #expect(deadlines.count <= 1)
                    for deadline in deadlines {
                        let range = before.advanced(by: limit)...after.advanced(by: limit)
                        #expect(range.contains(deadline), "\(name)")
                    }
                }
                port.invalidate()
            }
        }
    }

    @Test("a reply to a reply, and a look-up, have the limits that the page says")
    func others() throws {
        #expect(SendOnceRight.defaultLimit == (try Self.documented("SendOnceRight.defaultLimit")))
        #expect(PortNameServer.lookUpLimit == (try Self.documented("PortNameServer.lookUpLimit")))
    }
}
