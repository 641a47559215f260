// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import RunLoopCore
import Synchronization

// The state of a worker: whether it has checked in, and how it ended. Each is recorded once, by the first thread that
// sees it: the one that delivers the check-in, the worker's own when its loop ends, one that waits, or a loop that
// watches.
//
//   launched ──check-in──▶ checked in ──exit──▶ ended
//       └─────────────────────exit────────────────▲

final class WorkerRecord: Sendable {
    struct State {
        var checkIn: MachMessage?
        /// The error that ended a thread's body.
        var failure: String?
        var exit: WorkerExit?
        /// nil for a thread.
        var process: LaunchedProcess?
        var notices: [LoopNotification<WorkerExit>] = []
        /// They watch the process descriptor for threads that wait for workers.
        var sources: [RunLoopSource] = []
        /// The loops of the threads that wait for the worker; one for each wait.
        var waitingLoops: [ThreadRunLoop] = []
    }

    let state = Mutex(State())
    private let forkGuard = ForkGuard()  // immutable

    /// Whether this is a forked child's copy of the record of its parent's worker. Nothing is known from it, and its
    /// lock may be held by a thread that does not exist here.
    var isInherited: Bool { forkGuard.isInherited }

    func checkProcess() throws(PortError) {
        try forkGuard.check()
    }

    /// The right to the worker's port; nil before the check-in.
    var right: SendRight? { checkIn?.replyPort }
    var checkIn: MachMessage? { isInherited ? nil : state.withLock { $0.checkIn } }
    var exit: WorkerExit? { isInherited ? nil : state.withLock { $0.exit } }
    var process: LaunchedProcess? { isInherited ? nil : state.withLock { $0.process } }

    // MARK: Events

    /// Accepts the worker's first check-in. The caller may hold the lock under which a socket is read.
    ///
    /// - Returns: false when the message is no check-in, or the worker has checked in before: then it is for the port.
    func acceptCheckIn(_ message: MachMessage) -> Bool {
        guard message.id == MachMessage.checkIn, message.replyPort != nil else { return false }
        var stored = message
        stored.envelope.dropCharge()  // it is in no queue, and may live as long as the worker
        let loops = state.withLock { state -> [ThreadRunLoop]? in
            if state.checkIn != nil { return nil }
            state.checkIn = stored
            return state.waitingLoops
        }
        guard let loops else { return false }
        message.replyTarget?.noteRead()
        message.replyTarget?.confirm(.handled)
        for loop in loops { loop.wakeUp() }
        return true
    }

    func setProcess(_ process: LaunchedProcess) {
        state.withLock { $0.process = process }
    }

    /// The process ended before it could be watched, and other code has waited for it.
    func processDidEnd() {
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
        guard (try? process.signal(SIGKILL)) != nil,
            (try? sysPoll(process.rawValue, .readable, until: .distantFuture)) != nil
        else { return }
        reap()
    }

    /// Checks whether the process has ended, and if so waits for it, which does not block.
    func reap() {
        finish { state in
            // Under the lock, so that the thread that waits for the process is the one that records how it ended.
            state.process.flatMap { (try? $0.reap()) ?? nil }.map { WorkerExit($0) }
        }
    }

    /// Records the worker's end, once, and delivers the notices.
    private func finish(_ exit: (State) -> WorkerExit?) {
        if isInherited { return }
        let old = state.withLock { state -> State? in
            guard state.exit == nil, let exit = exit(state) else { return nil }
            state.exit = exit
            let old = state
            state.notices = []
            state.sources = []
            return old
        }
        guard let old, let exit = old.exit else { return }
        for source in old.sources { source.invalidate() }
        for notice in old.notices { notice.notify(exit, named: Self.noticeName) }
        for loop in old.waitingLoops { loop.wakeUp() }
    }
}

// MARK: - Notices of the end

// Notices of a worker's end, and waits for it.
extension WorkerRecord {
    private static let noticeName = "worker end"

    /// Delivers the notice once, when the worker has ended.
    func awaitEnd(_ notice: LoopNotification<WorkerExit>) throws(PortError) {
        let source = RunLoopSource(name: Self.noticeName, keepsModeAlive: false, routine: self)
        if let process, exit == nil { try PortError.converting(source.watch(pollable: process.rawValue)) }
        notice.attach(source)
        if notice.isOver { return }  // the loop has ended
        let over = state.withLock { $0.notices }.filter(\.isOver)
        // Recorded first: a loop that ends from now on finds it.
        let exit = state.withLock { state in
            state.notices.removeAll { known in over.contains { $0 === known } }
            if state.exit == nil { state.notices.append(notice) }
            return state.exit
        }
        if let exit { return notice.notify(exit, named: Self.noticeName) }
        do throws(PortError) {
            try notice.loop.addOrThrow(source, to: notice.mode)
        } catch {
            // One that was delivered meanwhile needs no more.
            if notice.cancel() { throw error }
        }
        // A loop that had ended before does not cancel the source.
        if notice.loop.hasEnded { notice.cancel() }
    }

    var noticeCount: Int { state.withLock { $0.notices }.count { !$0.isOver } }

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

/// The routine of sources that check for the end of a worker process.
extension WorkerRecord: SourceRoutine {
    func perform() -> SourceOutcome {
        reap()
        return .nothing
    }
}
