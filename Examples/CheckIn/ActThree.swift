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
    let worker = try WorkerProcess(mainName: boss.name, dies: workerDies) { boss.fail($0) }
    let table: Table
    do {
        table = try boss.countAll(files)
    } catch {
        throw worker.explain(error)
    }
    try worker.waitForCleanExit()
    Transcript.note("main", "the worker process has ended with status 0")
    table.print()
}

/// This program, launched again.
private final class WorkerProcess: Sendable {
    private let process = Mutex<Process?>(nil)
    private let hasEnded = DispatchSemaphore(value: 0)
    private let end = SharedEnd()

    private final class SharedEnd: Sendable {
        let text = Mutex<String?>(nil)
    }

    /// Launches it.
    ///
    /// - Parameters:
    ///   - mainName: the name of the port that it shall send to.
    ///   - dies: whether it shall be killed at work.
    ///   - didDie: called, on another thread, when it ends in another way than with status 0.
    /// - Throws: Foundation's error when this program cannot be launched.
    init(mainName: String, dies: Bool, didDie: @escaping @Sendable (Failure) -> Void) throws {
        let worker = Process()
        worker.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        worker.arguments = (dies ? ["--worker-dies"] : []) + ["--worker", mainName]
        worker.terminationHandler = { [end, hasEnded] ended in
            if let text = Self.describe(ended) {
                end.text.withLock { $0 = text }
                didDie(Failure(text))
            }
            hasEnded.signal()
        }
        try worker.run()
        process.withLock { $0 = worker }
    }

    private static func describe(_ process: Process) -> String? {
        if process.terminationReason == .uncaughtSignal {
            return "the worker (process \(process.processIdentifier)) died of signal \(process.terminationStatus)"
        }
        guard process.terminationStatus != 0 else { return nil }
        return "the worker (process \(process.processIdentifier)) ended with status \(process.terminationStatus)"
    }

    /// What went wrong: the worker's end, when that is it.
    func explain(_ error: any Error) -> any Error {
        guard let code = (error as? PortError)?.code, code == .peerDied || code == .deadName else { return error }
        guard hasEnded.wait(timeout: .now() + .seconds(30)) == .success else { return error }
        return end.text.withLock { $0 }.map { Failure($0) } ?? error
    }

    func waitForCleanExit() throws {
        guard hasEnded.wait(timeout: .now() + .seconds(30)) == .success else {
            throw Failure("the worker process does not end")
        }
        if let text = end.text.withLock({ $0 }) { throw Failure(text) }
    }
}
