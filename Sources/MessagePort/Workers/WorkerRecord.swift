// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The state of a worker: whether it has checked in, and how it ended. Each is recorded once, by the first thread that
// sees it: the one that delivers the check-in, the worker's own when its loop ends, one that waits, or a loop that
// watches.
//
//   launched ──check-in──▶ checked in ──exit──▶ ended
//       └─────────────────────exit────────────────▲

import PortCLibrary
import PortSystem
import RunLoopCore
import Synchronization

/// A handler to call when a worker has ended, and the run loop on which to call it.
struct ExitWatcher: Sendable {
    let loop: ThreadRunLoop
    let mode: RunLoopMode
    let handler: @Sendable (WorkerExit) -> Void
    /// In the loop until the watcher is notified; watches the process descriptor.
    var source: RunLoopSource?
}

final class WorkerRecord: Sendable {
    struct State {
        /// The worker's first message.
        var checkIn: MachMessage?
        /// The error that ended a thread's body.
        var failure: String?
        var exit: WorkerExit?
        /// nil for a thread.
        var process: LaunchedProcess?
        var watchers: [ExitWatcher] = []
        /// They watch the process descriptor for threads that wait for workers.
        var sources: [RunLoopSource] = []
        /// The loops of the threads that wait for the worker; one for each wait.
        var waitingLoops: [ThreadRunLoop] = []
    }

    let state = Mutex(State())
    private let forkCount = sysForkCount()  // immutable

    /// Whether this is a forked child's copy of the record of its parent's worker. Nothing is known from it, and its
    /// lock may be held by a thread that is not there.
    var isInherited: Bool { sysForkCount() != forkCount }

    func checkProcess() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
    }

    /// The right to the worker's port; nil before the check-in.
    var right: SendRight? { checkIn?.replyPort }
    var checkIn: MachMessage? { isInherited ? nil : state.withLock { $0.checkIn } }
    var exit: WorkerExit? { isInherited ? nil : state.withLock { $0.exit } }
    var process: LaunchedProcess? { isInherited ? nil : state.withLock { $0.process } }

    // MARK: What happens

    /// Accepts the worker's first check-in. The caller may hold the lock under which a socket is read.
    ///
    /// - Returns: false when the message is no check-in, or the worker has checked in before: then it is for the port.
    func takeCheckIn(_ message: MachMessage) -> Bool {
        guard message.id == MachMessage.checkIn, message.replyPort != nil else { return false }
        var kept = message
        kept.envelope.dropCharge()  // it is in no queue, and may live as long as the worker
        let loops = state.withLock { state -> [ThreadRunLoop]? in
            if state.checkIn != nil { return nil }
            state.checkIn = kept
            return state.waitingLoops
        }
        guard let loops else { return false }
        message.replyTarget?.noteRead()
        for loop in loops { loop.wakeUp() }
        return true
    }

    /// Records the process that was started.
    func setProcess(_ process: LaunchedProcess) {
        state.withLock { $0.process = process }
    }

    /// The process ended before it could be watched, and other code has waited for it.
    func processIsGone() {
        finish { _ in .unknown }
    }

    /// Records why the thread is about to end.
    func fail(_ text: String) {
        state.withLock { $0.failure = text }
    }

    /// The thread's loop has ended.
    func threadDidEnd() {
        finish { state in state.failure.map { .threadFailed($0) } ?? .threadEnded }
    }

    /// Kills the process, if it runs, and waits until the kernel has ended it. A process that this one may not kill is
    /// left alone.
    func killProcess() {
        guard exit == nil, let process else { return }
        do throws(SystemError) {
            try process.signal(SIGKILL)
            _ = try sysPoll(process.rawValue, .readable, until: .distantFuture)
        } catch {
            return
        }
        reap()
    }

    /// Checks whether the process has ended, and if so waits for it, which does not block.
    func reap() {
        finish { state in
            // Under the lock, so that the thread that waits for the process is the one that records how it ended.
            guard let process = state.process else { return nil }
            do throws(SystemError) {
                return try process.reap().map { WorkerExit($0) }
            } catch {
                return nil
            }
        }
    }

    /// Records the worker's end, once, and notifies the watchers.
    private func finish(_ exit: (State) -> WorkerExit?) {
        if isInherited { return }
        let old = state.withLock { state -> State? in
            guard state.exit == nil, let exit = exit(state) else { return nil }
            state.exit = exit
            let old = state
            state.watchers = []
            state.sources = []
            return old
        }
        guard let old, let exit = old.exit else { return }
        for source in old.sources { source.invalidate() }
        for watcher in old.watchers {
            watcher.source?.invalidate()
            tell(watcher, exit)
        }
        for loop in old.waitingLoops { loop.wakeUp() }
    }

    func tell(_ watcher: ExitWatcher, _ exit: WorkerExit) {
        watcher.loop.perform(in: [watcher.mode], name: "worker end") { watcher.handler(exit) }
    }
}
