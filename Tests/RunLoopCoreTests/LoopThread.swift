// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Runs a closure on a thread of its own, with that thread's loop.
@discardableResult
func onLoop<Success: Sendable>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable (ThreadRunLoop) throws -> Success
) async throws -> Success {
    try await onNewThread(sourceLocation: sourceLocation) { try body(.current) }
}

extension ThreadRunLoop {
    /// Records every activity in a mode.
    @discardableResult
    func record(_ trace: Recorder<String>, in mode: RunLoopMode = .default) -> RunLoopObserver {
        let observer = RunLoopObserver(activities: .all) { _, activity in trace.append(activity.description) }
        add(observer, to: mode)
        return observer
    }

    /// Runs until stopped or finished; the watchdog ends a run that hangs.
    @discardableResult
    func runGuarded(
        mode: RunLoopMode = .default, returnAfterSourceHandled: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation
    ) -> RunLoopRunResult {
        let result = run(
            mode: mode, until: Watchdog.deadline, returnAfterSourceHandled: returnAfterSourceHandled)
        if result == .timedOut { Watchdog.expired("the run did not end", sourceLocation: sourceLocation) }
        return result
    }
}

/// A source that keeps a mode alive and does nothing.
func idleSource() -> RunLoopSource {
    RunLoopSource {}
}
