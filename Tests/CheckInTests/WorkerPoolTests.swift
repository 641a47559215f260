// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import TestSupport
import Testing

@Suite("Pools of workers", .workers) struct WorkerPoolTests {
    @Test("eight threads check in at once, and answer")
    func threads() async throws {
        try await onNewThread {
            let pool = try PortWorkerPool(count: 8) { number in
                try PortWorker.launchThread(name: "port worker \(number)", reversingBody)
            }
            let rights = try pool.checkIn(within: longTimeout)
            #expect(Set(rights).count == 8)
            for (number, right) in rights.enumerated() { #expect(try right.ask(1, "\(number)x") == "x\(number)") }
            #expect(try pool.shutDown(asking: leave, within: longTimeout) == Array(repeating: .threadEnded, count: 8))
        }
    }

    @Test("eight processes check in at once, and answer")
    func processes() async throws {
        try await withWorkers { scratch in
            let pool = try PortWorkerPool(count: 8) { _ in try PortWorker.launchProcess(scratch.worker("serve")) }
            let rights = try pool.checkIn(within: longTimeout)
            let processes = try rights.map { try $0.ask(2) }
            #expect(processes == pool.workers.map { $0.identity.description.replacing("process ", with: "") })
            let exits = try pool.shutDown(asking: leave, within: longTimeout)
            #expect(exits == Array(repeating: .exited(status: 0), count: 8))
        }
    }

    @Test("one that fails is named at once, and the others are shut down", arguments: 0..<3)
    func failedWork(number: Int) async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let pool = try PortWorkerPool(count: 3) {
                try PortWorker.launchProcess($0 == number ? scratch.worker("exit", "4") : scratch.worker("silent"))
            }
            let error = failure { _ = try pool.checkIn(within: longTimeout) }
            #expect(error?.code == .workerExited)
            #expect(error?.worker == pool.workers[number].identity)
            #expect(error?.workerExit == .exited(status: 4))
            #expect(pool.workers.allSatisfy { $0.exit != nil })
        }
    }

    @Test("one that has no room for the stop request does not keep the others from being asked")
    func fullWorker() async throws {
        try await onNewThread {
            let (isBusy, mayGoOn) = (Gate("the first handler"), Gate("the end of the other worker"))
            let pool = try PortWorkerPool(count: 2) { number in
                if number == 1 { return try PortWorker.launchThread(reversingBody) }
                return try PortWorker.launchThread { parent in
                    let port = MachPort(queueLimit: 1) { port, message in
                        if message.id == 99 { return port.invalidate() }
                        isBusy.open()
                        mayGoOn.wait()
                    }
                    try port.schedule()
                    try parent.checkIn(port, within: longTimeout)
                }
            }
            let busy = try pool.checkIn(within: longTimeout)[0]
            try busy.send(MachMessage(id: 1), within: longTimeout)
            isBusy.wait()
            #expect(try busy.trySend(MachMessage(id: 1)))
            #expect(try !busy.trySend(MachMessage(id: 1)))
            let other = pool.workers[1]
            let opener = runOnThread {
                _ = other.waitForExit(within: longTimeout)
                mayGoOn.open()
            }
            #expect(try pool.shutDown(asking: leave, within: longTimeout) == [.threadEnded, .threadEnded])
            try opener.join()
            // It did not stop because of the limit: it was asked to leave, and has handled that.
            #expect(other.sendRight?.isDead == true)
        }
    }

    @Test("one that does not check in within the limit is named, and all are shut down")
    func late() async throws {
        try await onNewThread {
            let pool = try PortWorkerPool(count: 3) { number in
                try PortWorker.launchThread { if number != 1 { try reversingBody($0) } }
            }
            let quick = [pool.workers[0], pool.workers[2]]
            for worker in quick { _ = try worker.checkIn(within: longTimeout) }
            let error = failure { _ = try pool.checkIn(within: .milliseconds(20)) }
            #expect(error?.code == .checkInTimedOut)
            #expect(error?.worker == pool.workers[1].identity)
            #expect(pool.workers.allSatisfy { $0.waitForExit(within: longTimeout) == .threadEnded })
        }
    }

    @Test("when one cannot be launched, those before it are shut down")
    func unlaunched() async throws {
        try await withWorkers(leaving: .anything) { scratch in
            let launched = Recorder<PortWorker>()
            let error = failure {
                _ = try PortWorkerPool(count: 3) { number in
                    if number == 2 { return try PortWorker.launchProcess(WorkerProgram("/nowhere")) }
                    let worker = try PortWorker.launchProcess(scratch.worker("silent"))
                    launched.append(worker)
                    return worker
                }
            }
            #expect(error?.code == .workerNotStarted)
            #expect(launched.elements.count == 2)
            #expect(launched.elements.allSatisfy { $0.exit != nil })
        }
    }

    @Test("a pool without workers has checked in")
    func empty() async throws {
        try await onNewThread {
            let pool = try PortWorkerPool(count: 0) { _ in try PortWorker.launchThread(reversingBody) }
            #expect(try pool.checkIn(within: .zero) == [])
            #expect(try pool.shutDown() == [])
        }
    }
}

@Suite("Workers and tasks", .asyncWorkers) struct AsyncWorkerTests {
    @Test("a task waits for a check-in and for an end")
    func checkIn() async throws {
        try await withScratchDirectory { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("serve"))
            let right = try await worker.checkIn(within: longTimeout)
            // On a thread of its own: a request runs that thread's loop, which a pool's thread would keep.
            #expect(try await onNewThread { try right.ask(1, "abc") } == "cba")
            try await right.send(leave, within: longTimeout)
            #expect(try await worker.exited() == .exited(status: 0))
        }
    }

    @Test("a task waits for a whole pool, and learns which one fails")
    func pool() async throws {
        let pool = try PortWorkerPool(count: 4) { _ in try PortWorker.launchThread(reversingBody) }
        #expect(try await pool.checkIn(within: longTimeout).count == 4)
        #expect(try await pool.shutDown(asking: leave, within: longTimeout) == Array(repeating: .threadEnded, count: 4))
        let failing = try PortWorkerPool(count: 2) { number in
            try PortWorker.launchThread { _ in if number == 1 { throw CancellationError() } }
        }
        let error = await #expect(throws: PortError.self) { _ = try await failing.checkIn(within: longTimeout) }
        #expect(error?.worker == failing.workers[1].identity)
    }

    @Test("a cancelled task waits no longer, and the worker goes on")
    func cancellation() async throws {
        let worker = try PortWorker.launchThread { _ in }
        let task = Task { try await worker.checkIn(within: .seconds(86_400)) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        let waiting = Task { try await worker.exited() }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        #expect(worker.exit == nil)
        let ending = Task { try await worker.shutDown(asking: leave, within: longTimeout) }
        ending.cancel()
        #expect(try await ending.value == .threadEnded, "an end that has begun is waited for")
        #expect(try await worker.exited() == .threadEnded)
    }

    @Test("a task that ends workers learns which one does not end")
    func stuck() async throws {
        let gate = Gate("the worker may go on")
        let worker = try PortWorker.launchThread { _ in gate.wait() }
        let error = await #expect(throws: PortError.self) { try await worker.shutDown(within: .milliseconds(10)) }
        #expect(error?.code == .workerStillRunning)
        gate.open()
        #expect(try await worker.exited() == .threadEnded)
    }
}
