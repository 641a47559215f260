// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A loop as the executor of actors and tasks. The reasons for its design: Docs/Decisions/0006-loops-as-executors.md.
//
// A job is one piece of an actor's or a task's code, from one suspension to the next. It is queued with the blocks, for
// the common modes, and costs no allocation of its own. Two rules ensure what Swift guarantees to actors:
//
//   One at a time.  While a job is in progress, runs that are nested inside it leave the other jobs waiting.
//   Each is run.    The jobs that wait when the thread ends are run on it before the loop ends. No thread could run a job
//                   that comes later: that traps, instead of leaving a task suspended forever.

import Synchronization

extension ThreadRunLoop: SerialExecutor, TaskExecutor {
    /// Enqueues a job, which the loop runs once, in a common mode, after the blocks and jobs that were posted before.
    ///
    /// Called by Swift for actors whose `unownedExecutor` is the loop. The call returns at once and wakes the loop. The
    /// job's priority changes nothing. Traps when the loop's thread has ended: the loop's thread must outlive the
    /// actors and tasks that use it.
    ///
    /// - Parameter job: the job.
    /// - Important: Thread safety: any thread.
    public func enqueue(_ job: consuming ExecutorJob) {
        enqueue(UnownedJob(job), .actor)
    }

    /// As ``enqueue(_:)``, for the jobs of tasks that prefer the loop.
    ///
    /// Swift has one requirement of this name in each of the two protocols, and only the protocol shows on whose behalf
    /// it calls. A job that is run for the wrong one is enqueued again each time its task calls or is called.
    ///
    /// - Parameter job: the job.
    /// - Important: Thread safety: any thread.
    @_implements(TaskExecutor,enqueue(_:))
    public func enqueueTaskJob(_ job: consuming ExecutorJob) {
        enqueue(UnownedJob(job), .task)
    }

    private func enqueue(_ job: UnownedJob, _ kind: BlockQueue.JobKind) {
        // Swift holds an executor without a reference. As soon as the job is in the queue, the loop's thread may run
        // it, and that may end the actor, the thread and so the loop, while this thread has yet to release the lock and
        // wake the loop. SAFETY: released below, once. A mere constant would not do: the compiler relies on the
        // caller's reference.
        let retained = unsafe Unmanaged.passRetained(self)
        defer { unsafe retained.release() }
        let mustWake = state.withLock { state -> Bool? in
            if state.hasEnded { return nil }
            state.blocks.append(job, kind)
            return state.mustWakeForJob
        }
        guard let mustWake else {
            fatalError(
                "An actor or a task has work for a run loop whose thread has ended. Keep the thread (a ResidentThread: do "
                    + "not stop or release it) until the actors and tasks that use its loop are done.")
        }
        if mustWake { parker.endWait() }
    }

    /// The loop as an actor's `unownedExecutor`. The actor's owner must keep the loop's thread alive.
    ///
    /// - Returns: a reference that does not retain the loop.
    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        // SAFETY: the caller retains the loop, as Swift requires for every executor.
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    /// The loop as the executor that a task prefers. The task's creator must keep the loop's thread alive.
    ///
    /// - Returns: a reference that does not retain the loop.
    public func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        // SAFETY: as above; and a task that is started with a preference retains its executor.
        unsafe UnownedTaskExecutor(ordinary: self)
    }

    /// Traps when the calling thread is not the loop's: so `assumeIsolated` works in every handler of the loop.
    ///
    /// - Important: Thread safety: any thread.
    public func checkIsolated() {
        preconditionOnLoop("Using an actor of a loop")
    }

    /// Whether the calling thread is the loop's.
    ///
    /// - Returns: true on the loop's thread, in handlers as in jobs; false elsewhere.
    /// - Important: Thread safety: any thread.
    public func isIsolatingCurrentContext() -> Bool? {
        isCurrent
    }
}

extension ThreadRunLoop {
    /// How many jobs wait.
    package var waitingJobCount: Int { state.withLock { $0.blocks.jobCount } }

    /// Calls a block or runs a job.
    func perform(_ item: BlockQueue.Item) {
        switch item {
        case .block(let entry): RUNLOOP_IS_CALLING_OUT_TO_A_BLOCK(entry)
        case .job(let job, let kind): RUNLOOP_IS_CALLING_OUT_TO_AN_EXECUTOR_JOB(job, kind)
        }
    }

    /// Runs the waiting jobs, and those that they make, until there is none; then empties the loop, because its thread
    /// ends.
    ///
    /// - Returns: everything that was in it, for the caller to release without the lock.
    func endAfterJobs() -> RunLoopState {
        while true {
            let (job, contents) = state.withLock { state -> (BlockQueue.Item?, RunLoopState?) in
                guard let job = state.blocks.dequeueFirstJob() else { return (nil, state.end()) }
                state.isRunningJob = true
                return (job, nil)
            }
            if let contents { return contents }
            if let job { perform(job) }
        }
    }
}
