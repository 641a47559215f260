// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("sending in a task", .tasks) struct TaskSendContract {
    /// Sends in a task.
    private func send(_ id: Int32, _ right: SendRight, within limit: Duration) -> Recorder<PortError.Code?> {
        let outcome = Recorder<PortError.Code?>("the end of the task")
        Task {
            do throws(PortError) {
                try await right.send(MachMessage(id: id, bytes: [7]), within: limit)
                outcome.append(nil)
            } catch {
                outcome.append(error.code)
            }
        }
        return outcome
    }

    @Test(
        "a task that sends waits for room, and its message comes after those before it",
        arguments: TestTransport.withName)
    func roomComes(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let count = try right.fill(bytes: 3000)
            let outcome = send(-7, right, within: longTimeout)
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.next().id == -7)
            #expect(outcome.waitUntilCount(1) == [nil])
        }
    }

    @Test(
        "a task that sends does not wait longer than its limit, and sends what has room",
        arguments: TestTransport.withName)
    func limit(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            #expect(send(1, right, within: .zero).waitUntilCount(1) == [nil])
            #expect(try port.next().id == 1)
            let count = try right.fill(bytes: 3000)
            for limit in [Duration.zero, .seconds(-1), .milliseconds(1)] {
                #expect(send(-1, right, within: limit).waitUntilCount(1) == [.sendTimedOut])
            }
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a value that a task sends waits for room, too; one whose task is cancelled meanwhile is not sent",
        arguments: TestTransport.withName)
    func value(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let count = try right.fill(bytes: 3000)
            let outcomes = Recorder<PortError.Code?>("the ends of the tasks")
            func send(_ text: String) -> Task<Void, Never> {
                Task {
                    do throws(PortError) {
                        try await right.send(text, id: -7, within: longTimeout)
                        outcomes.append(nil)
                    } catch {
                        outcomes.append(error.code)
                    }
                }
            }
            let cancelled = send("never")
            try right.waitForSenders(1)
            cancelled.cancel()
            #expect(outcomes.waitUntilCount(1) == [.cancelled])
            _ = send("seven")
            for id in 0..<count { #expect(try port.next().id == id) }
            let message = try port.next()
            #expect(message.id == -7 && message.bytes == MachMessage(content: "seven").bytes)
            #expect(outcomes.waitUntilCount(2) == [.cancelled, nil])
        }
    }

    @Test("a task that waits for room learns that the port has ended", arguments: TestTransport.allCases)
    func portEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            _ = try right.fill(bytes: 3000)
            let outcome = send(1, right, within: longTimeout)
            if transport == .memory { try right.waitForSenders(1) }
            try port.invalidate()
            #expect(outcome.waitUntilCount(1) == [.deadName])
            #expect(send(2, right, within: longTimeout).waitUntilCount(1) == [.deadName])
        }
    }

    @Test("a task that was cancelled before sends nothing", arguments: TestTransport.withName)
    func cancelled(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let outcome = Recorder<PortError.Code?>("the end of the task")
            Task {
                withUnsafeCurrentTask { $0?.cancel() }
                do throws(PortError) {
                    try await right.send(MachMessage(id: 1), within: longTimeout)
                    outcome.append(nil)
                } catch {
                    outcome.append(error.code)
                }
            }
            #expect(outcome.waitUntilCount(1) == [.cancelled])
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("more tasks than processors that do not wait for room keep no task that was let in from running")
    func impatientTasks() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let connection = try #require((right.destination as? RemotePort)?.connection)
            #expect(connection.sender.lock.tryLock() == true)
            let patient = send(1, right, within: longTimeout)
            while connection.sender.lock.waitingCount < 1 { sched_yield() }
            let ended = Counter("a task that does not wait")
            let count = 4 * sysconf(CInt(_SC_NPROCESSORS_ONLN))
            for _ in 0..<count {
                Task {
                    _ = try? right.trySend(MachMessage(id: 2))
                    ended.increment()
                }
            }
            while connection.sender.lock.waitingCount < 2 { sched_yield() }
            connection.sender.lock.unlock()
            #expect(ended.waitUntilCount(count))
            #expect(patient.waitUntilCount(1) == [nil])
            var ids: [Int32] = []
            while let message = try port.tryReceive() { ids.append(message.id) }
            #expect(ids.contains(1))
        }
    }
}
