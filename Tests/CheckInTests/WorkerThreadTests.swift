// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("Worker threads", .workers) struct WorkerThreadTests {
    @Test("a worker thread checks in with its own port, and answers over it")
    func checkIn() async throws {
        try await onNewThread {
            let worker = try PortWorker.launchThread(reversingBody)
            let right = try worker.checkIn(within: longTimeout)
            #expect(worker.sendRight == right)
            #expect(worker.checkInMessage?.id == 100)
            #expect(try right.ask(1, "abc") == "cba")
            #expect(worker.exit == nil)
            #expect(try worker.shutDown(asking: leave, within: longTimeout) == .threadEnded)
            #expect(right.isDead)
        }
    }

    @Test("a task of a worker checks in, too, and does not when it is cancelled")
    func checkInTask() async throws {
        let codes = Recorder<PortError.Code?>("the ends of check-ins")
        let worker = try PortWorker.launchThread { parent in
            let port = MachPort()
            try port.schedule()
            for isCancelled in [true, false] {
                Task {
                    if isCancelled { withUnsafeCurrentTask { $0?.cancel() } }
                    do throws(PortError) {
                        try await parent.checkIn(port, components: [.bytes([7])], within: longTimeout)
                        codes.append(nil)
                    } catch {
                        codes.append(error.code)
                    }
                }
                codes.waitUntilCount(isCancelled ? 1 : 2)
            }
        }
        _ = try await worker.checkIn(within: longTimeout)
        #expect(await codes.waitUntilCount(2) == [.cancelled, nil])
        #expect(worker.checkInMessage?.bytes == [7])
        try await worker.shutDown(within: longTimeout)
    }

    @Test("the identity names the thread as the kernel does")
    func identity() async throws {
        try await onNewThread {
            let ids = Recorder<Int32>()
            let worker = try PortWorker.launchThread(name: "port worker 7") { parent in
                ids.append(ThreadRunLoop.current.threadID)
                try reversingBody(parent)
            }
            _ = try worker.checkIn(within: longTimeout)
            #expect(worker.identity == .thread(name: "port worker 7", id: try #require(ids.elements.first)))
            try worker.shutDown(within: longTimeout)
        }
    }

    @Test("what a worker sends besides comes to the port of its launcher, the check-in does not")
    func messages() async throws {
        try await onNewThread {
            let seen = Recorder<String>()
            let loop = ThreadRunLoop.current
            let worker = try PortWorker.launchThread(
                handler: { _, message in
                    seen.append("\(message.id) \(message.text)")
                    if message.id == 2 { loop.stop() }
                },
                {
                    try reversingBody($0)
                    try $0.send(MachMessage(id: 1, text: "one"), within: longTimeout)
                    try $0.checkIn(MachPort())
                    try $0.send(MachMessage(id: 2, text: "two"), within: longTimeout)
                })
            try worker.port.schedule()
            loop.run(for: longTimeout)
            #expect(seen.elements == ["1 one", "100 ", "2 two"])
            #expect(worker.sendRight != nil)
            try worker.shutDown(within: longTimeout)
        }
    }

    @Test("an error that a body throws is reported as the reason, and the thread is gone")
    func failedWork() async throws {
        try await onNewThread {
            struct Refusal: Error, CustomStringConvertible { let description = "no work today" }
            let worker = try PortWorker.launchThread { _ in throw Refusal() }
            let error = failure { _ = try worker.checkIn(within: longTimeout) }
            #expect(error?.code == .workerExited)
            #expect(error?.workerExit == .threadFailed("no work today"))
            #expect(error?.worker == worker.identity)
            #expect(worker.waitForExit(within: longTimeout) == .threadFailed("no work today"))
        }
    }

    @Test("a thread that never checks in is reported within the limit, and can be shut down")
    func silence() async throws {
        try await onNewThread {
            let worker = try PortWorker.launchThread { _ in }
            let error = failure { _ = try worker.checkIn(within: .milliseconds(20)) }
            #expect(error?.code == .checkInTimedOut)
            #expect(error?.worker == worker.identity)
            #expect(failure { _ = try worker.checkIn(within: .zero) }?.code == .checkInTimedOut)
            #expect(try worker.shutDown(asking: leave, within: longTimeout) == .threadEnded)
        }
    }

    @Test("a thread that does not return to its loop is reported, and ends when it does")
    func stuck() async throws {
        try await onNewThread {
            let gate = Gate("the worker may go on")
            let worker = try PortWorker.launchThread { _ in gate.wait() }
            let error = failure { try worker.shutDown(within: .milliseconds(10)) }
            #expect(error?.code == .workerStillRunning)
            #expect(error?.worker == worker.identity)
            gate.open()
            #expect(worker.waitForExit(within: longTimeout) == .threadEnded)
        }
    }

    @Test("a thread ends when its port is invalidated, and its launcher is notified once on its loop")
    func ending() async throws {
        try await onNewThread {
            let exits = Recorder<WorkerExit>()
            let loop = ThreadRunLoop.current
            let worker = try PortWorker.launchThread(reversingBody)
            try worker.notifyWhenExited { exit in
                #expect(loop.isCurrent)
                exits.append(exit)
                loop.stop()
            }
            try worker.checkIn(within: longTimeout).send(leave, within: longTimeout)
            loop.add(RunLoopSource {})
            loop.run(for: longTimeout)
            #expect(worker.waitForExit(within: longTimeout) == .threadEnded)
            try worker.shutDown(within: longTimeout)
            #expect(exits.elements == [.threadEnded])
        }
    }

    @Test("a loop that ends drops its pending notice, while the worker goes on")
    func endedLoop() async throws {
        try await onNewThread {
            let process = try PortWorker.launchProcess(WorkerProgram("/bin/sleep", ["86400"]))
            let thread = try PortWorker.launchThread { _ in }
            for worker in [process, thread] {
                let released = Counter("released handlers")
                let loop = try onNewThread { () -> ThreadRunLoop in
                    let probe = LifeProbe(released)
                    try worker.notifyWhenExited { _ in withExtendedLifetime(probe) {} }
                    return .current
                }
                #expect(released.value == 1, "\(worker)")
                // The same for one that has ended before.
                let probe = LifeProbe(released)
                try worker.notifyWhenExited(on: loop) { [probe] _ in withExtendedLifetime(probe) {} }
                #expect(worker.record.noticeCount == 0)
                #expect(worker.exit == nil)
                try worker.shutDown(within: longTimeout)
            }
        }
    }
}

/// The thread of a worker that was released is not joined: it exists for a moment after it has reported its end.
@Suite("Worker threads that are released", .asyncWorkers) struct ReleasedWorkerTests {
    @Test("a worker that is released stops, and its port is dead")
    func release() async throws {
        try await onNewThread {
            let rights = Recorder<SendRight>()
            let loop = ThreadRunLoop.current
            let exits = Recorder<WorkerExit>()
            var worker: PortWorker? = try PortWorker.launchThread {
                rights.append($0)
                try reversingBody($0)
            }
            try worker?.notifyWhenExited { exit in
                exits.append(exit)
                loop.stop()
            }
            let right = try worker?.checkIn(within: longTimeout)
            worker = nil
            loop.add(RunLoopSource {})
            loop.run(for: longTimeout)
            #expect(exits.elements == [.threadEnded])
            #expect(rights.elements.first?.isDead == true)
            withExtendedLifetime(right) {}
        }
    }
}
