// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What becomes of a worker: whether it has checked in, and how it ended. Each is noted once, by whichever thread sees it
// first: the one that delivers the check-in, the worker's own when its loop ends, one that waits, or a loop that watches.
//
//   launched ──check-in──▶ checked in ──exit──▶ ended
//       └─────────────────────exit────────────────▲

import PortSystem
import RunLoopCore
import Synchronization

/// Somebody who wants to know of a worker's end, and on which run loop.
struct ExitWatcher: Sendable {
    let loop: ThreadRunLoop
    let mode: RunLoopMode
    let handler: @Sendable (WorkerExit) -> Void
}

final class WorkerRecord: Sendable {
    struct State {
        /// The worker's first message.
        var checkIn: MachMessage?
        /// What ended a thread's body.
        var failure: String?
        var exit: WorkerExit?
        /// The process descriptor; nil for a thread.
        var process: SharedDescriptor?
        var watchers: [ExitWatcher] = []
        /// They watch the process descriptor on the watchers' loops.
        var sources: [RunLoopSource] = []
        /// The loops of those who wait for the worker; one for each wait.
        var waitingLoops: [ThreadRunLoop] = []
    }

    private let state = Mutex(State())

    /// The right to the worker's port; nil before the check-in.
    var right: SendRight? { checkIn?.replyPort }
    var checkIn: MachMessage? { state.withLock { $0.checkIn } }
    var exit: WorkerExit? { state.withLock { $0.exit } }
    var process: SharedDescriptor? { state.withLock { $0.process } }

    // MARK: What happens

    /// Takes the worker's first check-in. The caller may hold the lock with which a socket is read.
    ///
    /// - Returns: false when the message is none, or the worker has checked in before: then it is for the port.
    func takeCheckIn(_ message: MachMessage) -> Bool {
        guard message.id == MachMessage.checkIn, message.replyPort != nil else { return false }
        let loops = state.withLock { state -> [ThreadRunLoop]? in
            if state.checkIn != nil { return nil }
            state.checkIn = message
            return state.waitingLoops
        }
        guard let loops else { return false }
        message.replyTarget?.noteRead()
        for loop in loops { loop.wakeUp() }
        return true
    }

    /// Notes the process that was started.
    func setProcess(_ process: SharedDescriptor) {
        state.withLock { $0.process = process }
    }

    /// The process ended before it could be watched, and somebody else has waited for it.
    func processIsGone() {
        finish { _ in .unknown }
    }

    /// Notes why the thread is about to end.
    func fail(_ text: String) {
        state.withLock { $0.failure = text }
    }

    /// The thread's loop has ended.
    func threadDidEnd() {
        finish { state in state.failure.map { .threadFailed($0) } ?? .threadEnded }
    }

    /// Looks whether the process has ended, and if so waits for it, which does not block.
    func reap() {
        finish { state in
            // Under the lock, so that the one who waits for the process is the one who says how it ended.
            guard let process = state.process else { return nil }
            do throws(SystemError) {
                return try sysReap(process.rawValue).map { WorkerExit($0) }
            } catch {
                return nil
            }
        }
    }

    /// Notes the worker's end, once, and tells those who want to know.
    private func finish(_ exit: (State) -> WorkerExit?) {
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
        for watcher in old.watchers { tell(watcher, exit) }
        for loop in old.waitingLoops { loop.wakeUp() }
    }

    private func tell(_ watcher: ExitWatcher, _ exit: WorkerExit) {
        watcher.loop.perform(in: [watcher.mode], name: "worker end") { watcher.handler(exit) }
    }

    // MARK: Who wants to know

    /// Tells the watcher once, on its loop, when the worker has ended.
    func watch(_ watcher: ExitWatcher) throws(PortError) {
        var source: RunLoopSource?
        if let process, exit == nil {
            let made = RunLoopSource(name: "worker end", keepsModeAlive: false, routine: EndRoutine(record: self))
            do throws(SystemError) {
                try made.watch(process.rawValue)
            } catch {
                throw PortError(error)
            }
            try watcher.loop.addOrThrow(made, to: watcher.mode)
            source = made
        }
        let exit = state.withLock { state in
            if state.exit == nil {
                state.watchers.append(watcher)
                if let source { state.sources.append(source) }
            }
            return state.exit
        }
        guard let exit else { return }
        source?.invalidate()
        tell(watcher, exit)
    }

    /// The loop is woken from now on by a check-in and by the worker's end.
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

    func perform() -> Bool {
        record.reap()
        return false
    }
}
