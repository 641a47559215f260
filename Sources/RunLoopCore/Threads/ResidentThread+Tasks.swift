// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension ResidentThread {
    /// Posts a task, which the thread executes once, after everything that was posted to it or its loop before.
    ///
    /// Returns at once. A task that was accepted is executed, even if the thread is stopped or this object is released
    /// meanwhile. A task that throws ends nothing: its error is passed to the handler that the thread was made with.
    /// Tasks are executed in the common modes: not inside a nested run in another mode.
    ///
    /// - Parameters:
    ///   - name: what the task is called in traces and reports.
    ///   - task: what to execute, on the thread.
    /// - Throws: ``RunLoopError/Code/threadEnded`` when the thread has ended or was stopped. The task is then never
    ///   called.
    public func perform(
        name: String? = nil, _ task: @escaping @Sendable () throws -> Void
    ) throws(RunLoopError) {
        let (loop, errorHandler) = (loop, errorHandler)
        let block: @Sendable () -> Void = {
            do { try task() } catch { errorHandler(error) }
        }
        let isAccepted = state.withLock { state in
            if state.isStopping { return false }
            loop.perform(in: [.common], name: name ?? "thread task", block)
            return true
        }
        if !isAccepted { throw RunLoopError(.threadEnded) }
    }
}
