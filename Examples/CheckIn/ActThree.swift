// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Act 3: act 2 between two processes. The program launches itself as the worker.

import Foundation
import NamedPortServer
import Synchronization

func actThree(_ files: [InputFile], workerDies: Bool) throws {
    Transcript.line("act 3: a worker process that was given the name of the main process's port")
    let boss = try NamedBoss(name: "checkin.main.\(getpid())")
    defer { boss.close() }
    let worker = try WorkerProcess(mainName: boss.name, dies: workerDies, whenDead: boss.fail)
    let table: Table
    do {
        table = try boss.countAll(files)
    } catch {
        throw worker.explain(error)
    }
    if let failure = try worker.waitForEnd() { throw failure }
    Transcript.note("main", "the worker process has ended with status 0")
    table.print()
}

/// This program, launched again.
private final class WorkerProcess: Sendable {
    private let process: Mutex<Process>
    private let end: End

    /// How it ended, told by the thread that notices it.
    private final class End: Sendable {
        let failure = Mutex<Failure?>(nil)
        let hasCome = DispatchSemaphore(value: 0)
    }

    /// Launches it; `whenDead` is called, on another thread, when it ends in another way than with status 0.
    init(mainName: String, dies: Bool, whenDead: @escaping @Sendable (Failure) -> Void) throws {
        let worker = Process()
        let end = End()
        worker.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        worker.arguments = (dies ? ["--worker-dies"] : []) + ["--worker", mainName]
        worker.terminationHandler = { ended in
            if let failure = Self.failure(of: ended) {
                end.failure.withLock { $0 = failure }
                whenDead(failure)
            }
            end.hasCome.signal()
        }
        try worker.run()
        process = Mutex(worker)
        self.end = end
    }

    private static func failure(of process: Process) -> Failure? {
        let status = process.terminationStatus
        if process.terminationReason == .uncaughtSignal {
            return Failure("the worker (process \(process.processIdentifier)) died of signal \(status)")
        }
        if status == 0 { return nil }
        return Failure("the worker (process \(process.processIdentifier)) ended with status \(status)")
    }

    /// Waits until it has ended. Call it once.
    ///
    /// - Returns: nil when it ended with status 0.
    /// - Throws: when it does not end.
    func waitForEnd() throws -> Failure? {
        guard end.hasCome.wait(timeout: .now() + .seconds(30)) == .success else {
            throw Failure("the worker process does not end")
        }
        return end.failure.withLock { $0 }
    }

    /// Why talking to it failed: its death, when that is why.
    func explain(_ error: any Error) -> any Error {
        guard let code = (error as? PortError)?.code, code == .peerDied || code == .deadName else { return error }
        return (try? waitForEnd()) ?? error
    }
}
