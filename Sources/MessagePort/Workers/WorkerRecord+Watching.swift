// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Notices of a worker's end, and waits for it.

import PortSystem
import RunLoopCore
import Synchronization

extension WorkerRecord {
    /// Notifies the watcher once, on its loop, when the worker has ended.
    func watch(_ watcher: ExitWatcher) throws(PortError) {
        try checkProcess()
        let source = exitSource()
        if let process, exit == nil {
            do throws(SystemError) {
                try source.watch(pollable: process.rawValue)
            } catch {
                throw PortError(error)
            }
        }
        var watcher = watcher
        watcher.source = source
        // Recorded first: a loop that ends from now on finds it.
        let exit = state.withLock { state in
            if state.exit == nil { state.watchers.append(watcher) }
            return state.exit
        }
        if let exit { return tell(watcher, exit) }
        do throws(PortError) {
            try watcher.loop.addOrThrow(source, to: watcher.mode)
        } catch {
            // A watcher that was notified meanwhile needs no more.
            if forgetWatchers(where: { $0.source == source }) { throw error }
        }
        // A loop that had ended before does not cancel the source.
        if watcher.loop.hasEnded { forgetWatchers(on: watcher.loop) }
    }

    /// Makes the source that notices the end of a process, and that of the watcher's loop.
    private func exitSource() -> RunLoopSource {
        RunLoopSource(name: "worker end", keepsModeAlive: false, routine: EndRoutine(record: self))
    }

    /// How many watchers there are.
    var watcherCount: Int { state.withLock { $0.watchers.count } }

    /// Removes the watchers of a loop whose thread has ended.
    fileprivate func forgetWatchers(on loop: ThreadRunLoop) {
        forgetWatchers { $0.loop == loop }
    }

    /// - Returns: whether there was one.
    @discardableResult
    private func forgetWatchers(where isForgotten: (ExitWatcher) -> Bool) -> Bool {
        let (all, count) = state.withLock { state in
            let all = state.watchers
            state.watchers = all.filter { !isForgotten($0) }
            return (all, state.watchers.count)
        }
        // What a user's handler holds is released without the lock.
        return withExtendedLifetime(all) { count < all.count }
    }

    /// The source is invalid once the worker has ended, so that a process descriptor, which stays readable then, wakes
    /// no loop any more.
    func endWithWorker(_ source: RunLoopSource) {
        let hasEnded = state.withLock { state in
            if state.exit == nil { state.sources.append(source) }
            return state.exit != nil
        }
        if hasEnded { source.invalidate() }
    }

    /// Undoes `endWithWorker`.
    func forget(_ sources: [RunLoopSource]) {
        state.withLock { state in state.sources.removeAll { sources.contains($0) } }
    }

    /// A check-in and the worker's end wake the loop from now on.
    func beginWait(on loop: ThreadRunLoop) {
        state.withLock { $0.waitingLoops.append(loop) }
    }

    /// Undoes one `beginWait`.
    func endWait(on loop: ThreadRunLoop) {
        state.withLock { state in
            guard let index = state.waitingLoops.firstIndex(of: loop) else { return }
            state.waitingLoops.remove(at: index)
        }
    }
}

/// Notices the end of a worker process.
private struct EndRoutine: SourceRoutine {
    let record: WorkerRecord

    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        if loop.hasEnded { record.forgetWatchers(on: loop) }
    }

    func perform() -> SourceOutcome {
        record.reap()
        return .nothing
    }
}
