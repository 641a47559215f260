// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A thread whose loop runs in the default mode until it is stopped.
struct RunningLoop: Sendable {
    let loop: ThreadRunLoop
    let thread: TestThread<RunLoopRunResult>

    init() {
        let started = Recorder<ThreadRunLoop>("started loops")
        thread = runOnThread {
            ThreadRunLoop.current.add(idleSource())
            started.append(.current)
            return ThreadRunLoop.current.runGuarded()
        }
        loop = started.waitUntilCount(1)[0]
    }

    /// Stops the run and waits for the thread's end.
    func stop() throws {
        loop.stop()
        try thread.join()
    }
}

/// Runs a closure on a thread of its own while the loop of another thread runs.
@discardableResult
func besideLoop<Success: Sendable>(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (ThreadRunLoop) throws -> Success
) async throws -> Success {
    try await onNewThread(sourceLocation: sourceLocation) {
        let running = RunningLoop()
        let result = Result { try body(running.loop) }
        try running.stop()
        return try result.get()
    }
}

extension ThreadRunLoop {
    /// Waits until something was posted to a mode that nothing was posted to before.
    func waitUntilPosted(to modes: [RunLoopMode], sourceLocation: SourceLocation = #_sourceLocation) {
        let deadline = Watchdog.deadline
        while !allModes.isSuperset(of: modes) {
            if .now >= deadline { return Watchdog.expired("nothing was posted", sourceLocation: sourceLocation) }
            yieldThread()
        }
    }
}
