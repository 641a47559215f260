// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("forked children", .contract)
struct ForkTests {
    @Test("a child's use of its parent's ports is an error, and the parent notices nothing", arguments: [false, true])
    func inherited(lockIsHeld: Bool) async {
        await #expect(processExitsWith: .success) { [lockIsHeld = lockIsHeld as Bool] in
            try await withScratchDirectory { scratch in
                try await onNewThread {
                    try ForkedUse(
                        bench: Bench(transport: .socket, directory: .open(path: scratch.path("ports")), far: .none)
                    )
                    .run(lockIsHeld: lockIsHeld)
                }
            }
        }
    }

    @Test(
        "a request that is under way in a child fails when the handler that forked returns",
        arguments: [false, true])
    func requestUnderWay(overSocket: Bool) async {
        await #expect(processExitsWith: .success) { [overSocket = overSocket as Bool] in
            try await withScratchDirectory { scratch in
                try await onNewThread {
                    let directory = try PortDirectory.open(path: scratch.path("ports"))
                    let bench = Bench(transport: overSocket ? .socket : .memory, directory: directory, far: .none)
                    try ForkInHandler(bench).run()
                }
            }
        }
    }

    @Test(
        "a child that receives for tasks starts a thread of its own, and the parent's goes on",
        .enabled(if: forkedChildMayStartThreads, "the thread sanitizer ends it"))
    func ioThread() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread {
                let inherited = try IOThread.loop()
                #expect(runs(inherited))
                let child = try forking {
                    (try? runOnThread { faultsOfIOThread(inherited) }.join()) ?? ["the child's thread hangs"]
                }
                #expect(exitStatus(of: child) == 0)
                #expect(try IOThread.loop() == inherited)
                #expect(runs(inherited))
            }
        }
    }

    @Test("a child's copies of its parent's workers leave the workers alone", arguments: [false, true])
    func workers(lockIsHeld: Bool) async {
        await #expect(processExitsWith: .success) { [lockIsHeld = lockIsHeld as Bool] in
            try await onNewThread { try ForkedWorkers().run(lockIsHeld: lockIsHeld) }
        }
    }
}

/// What a forked child finds wrong with the thread that receives for tasks.
private func faultsOfIOThread(_ inherited: ThreadRunLoop) -> [String] {
    guard let own = try? IOThread.loop() else { return ["no thread"] }
    if own == inherited { return ["the loop is the parent's"] }
    if (try? IOThread.loop()) != own { return ["the loop is another each time"] }
    return runs(own) ? [] : ["the thread does not run its loop"]
}

/// Whether a block that is posted to the loop runs.
private func runs(_ loop: ThreadRunLoop) -> Bool {
    let ran = Gate("a block on the I/O thread")
    loop.perform { ran.open() }
    return ran.wait()
}

/// Workers of both kinds, and what a forked child finds when it uses them.
private struct ForkedWorkers: Sendable {
    func run(lockIsHeld: Bool) throws {
        var workers = [
            try PortWorker.launchProcess(WorkerProgram("/bin/sleep", ["86400"])),
            try PortWorker.launchThread { _ in },
        ]
        // The start of the thread retains its object until the thread has begun.
        try workers[1].thread?.performAndWait(within: longTimeout) {}
        let (locked, mayUnlock) = (Gate("the lock"), Gate("the fork"))
        // Of the loop, not of the thread's object: that would be retained by the holder of the lock.
        let loop = try #require(workers[1].thread?.loop)
        let holder = runOnThread {
            guard lockIsHeld else { return locked.open() }
            loop.state.withLock { _ in
                locked.open()
                mayUnlock.wait()
            }
        }
        locked.wait()
        let child = try forking {
            let failures = workers.flatMap(failures)
            workers = []
            return failures
        }
        mayUnlock.open()
        try holder.join()
        #expect(exitStatus(of: child) == 0)
        for worker in workers { #expect(worker.exit == nil) }
        #expect(try workers[0].shutDown(within: longTimeout) == .signalled(SIGTERM))
        #expect(try workers[1].shutDown(within: longTimeout) == .threadEnded)
    }

    /// The calls that did not report that the worker is the parent's.
    private func failures(_ worker: PortWorker) -> [String] {
        var failures: [String] = []
        func expect(_ name: String, _ body: () throws(PortError) -> Void) {
            let code = portError(body)?.code
            if code != .forkedProcess { failures.append("\(worker) \(name): \(code.map { "\($0)" } ?? "no error")") }
        }
        expect("check-in") { () throws(PortError) in _ = try worker.checkIn(within: .zero) }
        expect("shut down") { () throws(PortError) in _ = try worker.shutDown(within: .zero) }
        expect("end notice") { () throws(PortError) in try worker.notifyWhenExited { _ in } }
        expect("end") { () throws(PortError) in
            try immediately { () async throws(PortError) in
                do { _ = try await worker.exited() } catch let error as PortError { throw error } catch {}
            }
        }
        if worker.exit != nil || worker.waitForExit(within: .zero) != nil { failures.append("\(worker) has ended") }
        if worker.sendRight != nil || worker.checkInMessage != nil { failures.append("\(worker) has checked in") }
        return failures
    }
}

/// A port, rights to it, and what a forked child finds when it uses them.
private struct ForkedUse: Sendable {
    let bench: Bench

    func run(lockIsHeld: Bool) throws {
        var held: Held? = try Held(bench)
        let port = try #require(held?.port)
        try port.makeSendRight().send(MachMessage(id: 1))
        let (isKnown, mayLock) = (Gate("the loop"), Gate("the notices"))
        let (locked, mayUnlock) = (Gate("the lock"), Gate("the fork"))
        let loops = Box<ThreadRunLoop>()
        let remote = try #require(held?.remote.destination as? RemotePort)
        let connection = try remote.reached()
        let holder = runOnThread {
            let loop = ThreadRunLoop.current
            loops.value.withLock { $0 = loop }
            isKnown.open()
            mayLock.wait()
            guard lockIsHeld else { return locked.open() }
            loop.state.withLock { _ in
                port.localPort.state.withLock { _ in
                    remote.phase.withLock { _ in
                        holding(port, connection) {
                            locked.open()
                            mayUnlock.wait()
                        }
                    }
                }
            }
        }
        isKnown.wait()
        let loop = try #require(loops.value.withLock { $0 })
        port.setInvalidationHandler(on: loop) {}  // ends with the child's copy of the port
        let parts = try Parts(port, connection, loop)
        mayLock.open()
        locked.wait()
        let asker = try #require(held?.asker)  // the child has no such thread and does not release it
        let child = try forking {
            let failures = (held?.failures(on: loop) ?? ["nothing held"]) + parts.failures(remote, on: loop)
            held = nil
            return failures
        }
        mayUnlock.open()
        try holder.join()
        #expect(exitStatus(of: child) == 0)
        // The parent's port, its connection and its socket file are as before.
        let right = try #require(held?.remote)
        try right.send(MachMessage(id: 2))
        #expect(try port.next().id == 1)
        #expect(try port.next().id == 2)
        try bench.right(to: port).send(MachMessage(id: 3))
        #expect(try port.next().id == 3)
        // A thread that waits for a reply in memory has received nothing from the child.
        #expect(held?.question.isCancelled == false)
        try held?.question.reply(MachMessage(id: 21))
        #expect(try asker.join() == 21)
    }
}

/// Calls `body` with the locks of a port's handlers and of a connection held.
private func holding(_ port: MachPort, _ connection: SocketConnection, _ body: () -> Void) {
    port.state.withLock { _ in
        connection.receiver.state.withLock { _ in
            connection.sender.backlog.withLock { _ in
                connection.state.withLock { _ in body() }
            }
        }
    }
}

/// What a child's copy of a loop, of a wait or of a notice calls, without a call of the program.
private struct Parts: Sendable {
    let port: MachPort
    let connection: SocketConnection
    let messages: RunLoopSource
    let replies: RunLoopSource
    let notice: LoopNotification<Void>
    let request = NoticeRequest()
    let slot = ReplySlot(wakes: nil)

    init(_ port: MachPort, _ connection: SocketConnection, _ loop: ThreadRunLoop) throws {
        (self.port, self.connection) = (port, connection)
        messages = port.makeSource(0).source
        replies = try #require(try connection.replySource())
        notice = LoopNotification<Void>(on: loop, in: .default) { _ in }
    }

    /// The calls that did not leave the parent's objects alone.
    func failures(_ remote: RemotePort, on loop: ThreadRunLoop) -> [String] {
        let localPort = port.localPort
        messages.routine.didLeave(.default, of: loop)
        localPort.detach(messages)
        port.setPeerPolicy(.sameUser)
        connection.receiveUnlessReceiving()
        connection.receiver.receiveProbes(from: connection, exceedingLimit: true)
        connection.noteRightRemoved(1)
        WaitProbes.start(for: Shared(WaitGraph.Wait(over: connection, ReplySlot(wakes: nil))), on: loop)
        connection.forgetDeathNotice(DeathNotice(loop: loop, mode: .default) { _ in })
        remote.endReplies(on: loop, in: .default, to: slot)
        let facts = [
            ("the port's source is ready", messages.routine.isReady()),
            ("the port's source handles something", messages.routine.perform().hasHandled),
            ("the port has a message", localPort.hasMessage),
            ("the port has sockets with something", localPort.receiveFromSockets() != 0),
            ("the sockets wait for room", localPort.socketsAreBlocked),
            ("the connection's source is ready", replies.routine.isReady()),
            ("the connection's source handles something", replies.routine.perform().hasHandled),
            ("the connection is within a message", !connection.receiveArrivals()),
            ("the connection wakes the loop", connection.wakeChannel != nil),
            ("the notice was pending", notice.cancel()),
            ("the notice is delivered", request.begin()),
            ("the reply is awaited", slot.isWaiting),
            ("the reply is not the parent's", takeFails() != .forkedProcess),
        ]
        return facts.filter(\.1).map(\.0)
    }

    private func takeFails() -> PortError.Code? { portError { () throws(PortError) in _ = try slot.take() }?.code }
}

private final class Held: Sendable {
    let port: MachPort
    let local: SendRight
    let remote: SendRight
    let request: MachMessage
    /// A request of a thread of this process, in memory.
    let question: MachMessage
    let asker: TestThread<Int32>
    private let answers: MachPort
    private let parent = PeerIdentity.current

    init(_ bench: Bench) throws {
        port = try bench.port()
        local = port.makeSendRight()
        remote = try bench.right(to: port)
        try remote.send(MachMessage(id: 0))
        #expect(try port.next().id == 0)
        answers = try bench.port()
        var message = MachMessage(id: 10)
        message.setReplyRight(answers.makeSendOnceRight())
        try remote.send(message)
        request = try port.next()
        let local = local
        let asks = Gate("the asker waits")
        asker = runOnThread {
            waitsNow(in: .portReply, asks)
            return try local.ask(MachMessage(id: 20)).id
        }
        question = try port.next()
        asks.wait()  // it holds no lock of the runtime
    }

    /// The calls that did not report that the port is the parent's.
    func failures(on loop: ThreadRunLoop) -> [String] {
        var failures: [String] = []
        func expect(_ name: String, _ body: () throws(PortError) -> Void) {
            let code = portError(body)?.code
            if code != .forkedProcess { failures.append("\(name): \(code.map { "\($0)" } ?? "no error")") }
        }
        for (name, right) in [("local", local), ("remote", remote)] {
            expect("\(name) send") { () throws(PortError) in try right.send(MachMessage(), within: .zero) }
            expect("\(name) trySend") { () throws(PortError) in _ = try right.trySend(MachMessage()) }
            expect("\(name) request") { () throws(PortError) in _ = try right.request(MachMessage()) }
            expect("\(name) owner") { () throws(PortError) in _ = try right.owner() }
            expect("\(name) death") { () throws(PortError) in try right.notifyWhenDead { _ in } }
            expect("\(name) room") { () throws(PortError) in try right.notifyWhenSendPossible(on: loop) { _ in } }
            expect("\(name) request of a task") { () throws(PortError) in
                try immediately { () async throws(PortError) in _ = try await right.request(MachMessage()) }
            }
            if !right.isDead { failures.append("\(name) is not dead") }
        }
        expect("tryReceive") { () throws(PortError) in _ = try port.tryReceive() }
        expect("receive") { () throws(PortError) in _ = try port.receive(within: .zero) }
        expect("schedule") { () throws(PortError) in try port.schedule() }
        expect("move") { () throws(PortError) in try port.move(to: .current) }
        expect("no senders") { () throws(PortError) in try port.notifyWhenNoSenders(on: loop) {} }
        expect("address") { () throws(PortError) in _ = try port.localPort.address() }
        expect("doorbell") { () throws(PortError) in _ = try port.doorbell() }
        expect("messages") { () throws(PortError) in
            try immediately { () async throws(PortError) in
                var messages = self.port.messages.makeAsyncIterator()
                _ = try await messages.next()
            }
        }
        expect("sender's process") { () throws(PortError) in _ = try request.sender.openProcess() }
        expect("parent's process") { () throws(PortError) in _ = try parent.openProcess() }
        if !request.isCancelled { failures.append("the reply is awaited") }
        request.setCancellationHandler {}
        if !question.isCancelled { failures.append("the reply in memory is awaited") }
        question.setCancellationHandler {}
        expect("reply in memory") { () throws(PortError) in try question.reply(MachMessage()) }
        port.setInvalidationHandler(on: loop) {}
        expect("reply") { () throws(PortError) in try request.reply(MachMessage()) }
        if port.delegate != nil { failures.append("the delegate can be seen") }
        port.setDelegate(nil)
        if port.isValid { failures.append("the port is valid") }
        port.setQueueLimit(3)
        port.setHandler(nil)
        port.unschedule()
        port.unscheduleEverywhere()
        port.invalidate()
        if port.queueCount != 0 { failures.append("the queue can be seen") }
        return failures
    }
}

/// Runs a task that never suspends: a forked child has no threads on which it could continue.
func immediately(_ body: @escaping @Sendable () async throws(PortError) -> Void) throws(PortError) {
    let outcome = Outcome()
    Task.immediate {
        do throws(PortError) {
            try await body()
        } catch {
            outcome.failure.withLock { $0 = error }
        }
    }
    if let failure = outcome.failure.withLock({ $0 }) { throw failure }
}

private final class Outcome: Sendable {
    let failure = Mutex<PortError?>(nil)
}
