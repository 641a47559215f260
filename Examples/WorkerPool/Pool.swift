// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import Synchronization

/// Gives jobs to worker processes, and replaces those that die.
final class Pool: Sendable {
    private struct Report {
        var answer: Int?
        var deaths: [WorkerExit] = []
    }

    private struct State {
        var waiting: ArraySlice<Int>
        var reports: [Int: Report] = [:]
        var launches = 0
    }

    private let state: Mutex<State>
    private let attempts: Int

    init(jobs: ClosedRange<Int>, attempts: Int) {
        state = Mutex(State(waiting: Array(jobs)[...]))
        self.attempts = attempts
    }

    /// Does all jobs; each worker does one at a time.
    func run(workers: Int) async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<workers {
                group.addTask { try await self.serve() }
            }
            try await group.waitForAll()
        }
    }

    /// Gives jobs to one worker, and replaces it when it dies, until there are no more jobs.
    private func serve() async throws {
        var worker = try await launch()
        while let job = state.withLock({ $0.waiting.popFirst() }) {
            for attempt in 0..<attempts {
                do throws(PortError) {
                    let answer: Int = try await worker.right.request([job, attempt], id: WorkerMessage.square)
                    state.withLock { $0.reports[job, default: Report()].answer = answer }
                    break
                } catch {
                    guard [.peerDied, .deadName].contains(error.code) else { throw error }
                }
                let exit = try await worker.process.exited()
                state.withLock { $0.reports[job, default: Report()].deaths.append(exit) }
                worker = try await launch()
            }
        }
        try await worker.process.shutDown(asking: MachMessage(id: WorkerMessage.leave))
    }

    private func launch() async throws -> (process: PortWorker, right: SendRight) {
        let process = try PortWorker.launchProcess(WorkerProgram("/proc/self/exe", ["--worker"]))
        state.withLock { $0.launches += 1 }
        return (process, try await process.checkIn(within: .seconds(10)))
    }

    func printReport() {
        let state = state.withLock { $0 }
        for (job, report) in state.reports.sorted(by: { $0.key < $1.key }) {
            for exit in report.deaths { print("job \(job): its worker \(exit)") }
            print("job \(job): \(report.answer.map { "\($0)" } ?? "given up")")
        }
        print("\(state.launches) workers were launched")
    }
}
