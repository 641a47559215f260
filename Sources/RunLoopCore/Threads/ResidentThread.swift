// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

/// A thread with a run loop that stays until it is stopped, and executes tasks.
///
/// Its loop runs in the default mode. A source of its own keeps it alive: neither `stop()` of the loop nor removing
/// everything else ends it. It ends after ``stop()``, or when this object is released: it executes what was posted
/// before, ends its loop, and is gone. `join(within:)` waits for that. A reference to ``loop`` does not keep the
/// thread alive: in an optimized build a variable may be released right after its last use, so store the thread in a
/// property, or use `withExtendedLifetime`, as long as its loop is to run.
///
/// It sleeps in the kernel while there is nothing to do. Signals that are sent to the process are left to other
/// threads: the thread blocks all but those that its own instructions raise (`SIGSEGV` and the like). A child process
/// that is started on it inherits that mask.
///
/// The thread does not hold this object; a task may, and then retains it for as long as it waits or runs.
///
/// - Important: Thread safety: any thread.
public final class ResidentThread: Sendable {
    /// Passes the new thread's loop to the thread that starts it.
    private final class Start: Sendable {
        let loop = Mutex<ThreadRunLoop?>(nil)
        let isKnown = ThreadEvent()  // guards itself
    }

    struct State: ~Copyable {
        var isStopping = false
        /// Taken by the thread that joins it; detached when no thread did.
        var thread: SystemThread?
    }

    /// The thread's full name. The kernel shows its first 15 bytes, cut between characters.
    public let name: String

    /// The thread's run loop. It has ended when the thread has.
    public let loop: ThreadRunLoop

    let errorHandler: @Sendable (any Error) -> Void  // immutable
    let keepAliveSource: RunLoopSource  // guards itself; valid until the thread is to leave
    let loopDidEnd: LoopEnd  // guards itself
    let threadDidEnd = ThreadEvent()  // guards itself; set by the one that joined
    let state: Mutex<State>  // comes before the loop's lock

    /// Starts a thread. When this returns, the thread exists and is named, and its loop accepts items, blocks and
    /// tasks.
    ///
    /// - Parameters:
    ///   - name: what the thread is called in `ps`, `top` and debuggers.
    ///   - stackSize: the size of its stack in bytes; nil for the system's default, mostly 8 MiB.
    ///   - errorHandler: receives the errors of tasks, on the thread. Without it they are dropped. The thread and this
    ///     object hold it, so it must not hold this object.
    /// - Throws: `EAGAIN` when the system cannot make a thread (too many, or no memory for the stack), `EINVAL` when it
    ///   rejects a stack of that size.
    public init(
        name: String, stackSize: Int? = nil, errorHandler: @escaping @Sendable (any Error) -> Void = { _ in }
    ) throws(SystemError) {
        let (start, keepAliveSource, loopDidEnd) = (Start(), RunLoopSource {}, LoopEnd())
        let thread = try sysStartThread(stackSize: stackSize, blocksSignals: true) {
            sysNameThread(name)
            let loop = ThreadRunLoop.current
            loop.add(keepAliveSource, to: .common)
            start.loop.withLock { $0 = loop }
            start.isKnown.set()
            while keepAliveSource.isValid { loop.run() }
            loop.end()
            loopDidEnd.set()
        }
        start.isKnown.wait(until: .distantFuture)
        guard let loop = start.loop.withLock({ $0.take() }) else {
            fatalError("A resident thread has started without its loop. Report it: a bug in this package.")
        }
        self.name = name
        self.loop = loop
        self.errorHandler = errorHandler
        self.keepAliveSource = keepAliveSource
        self.loopDidEnd = loopDidEnd
        state = Mutex(State(thread: consume thread))
    }

    /// Stops the thread, as ``stop()`` does. Does not block, on whichever thread the last reference is released.
    deinit {
        stop()
    }

    /// Whether the calling thread is this one.
    public var isCurrent: Bool { loop.isCurrent }
}

// MARK: - Tasks

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

// MARK: - Waiting

extension ResidentThread {
    /// Calls a closure on the thread, after everything that was posted to it before, and blocks until it has returned.
    ///
    /// On the thread itself it is called at once. See ``ThreadRunLoop/performAndWait(in:within:_:)``.
    ///
    /// - Parameters:
    ///   - limit: the longest time to wait for the body to return. Zero or less never waits: on another thread nothing
    ///     is posted.
    ///   - body: what to call, on the thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the thread
    ///   has ended or was stopped before, and the body is then never called; ``RunLoopError/Code/timedOut`` when the
    ///   limit has passed: a body that has not begun is then never called, one that has begun continues.
    @available(*, noasync, message: "It blocks the thread. Leave `within` out to suspend the task instead.")
    public func performAndWait<Success: Sendable>(
        within limit: Duration, _ body: @escaping @Sendable () throws -> Success
    ) throws -> Success {
        try checkAccepts()
        return try loop.performAndWait(in: [.common], within: limit, body)
    }

    /// Calls a closure on the thread, after everything that was posted to it before, and suspends the task until it has
    /// returned.
    ///
    /// On the thread itself, as in a task of an actor that runs on its loop, it is called at once. Cancelling the task
    /// withdraws a body that has not begun; the call waits for one that has begun.
    ///
    /// - Parameter body: what to call, on the thread.
    /// - Returns: what the body returned.
    /// - Throws: what the body threw; `CancellationError` when the task was cancelled before the body began;
    ///   ``RunLoopError`` with the code ``RunLoopError/Code/threadEnded`` when the thread has ended or was stopped
    ///   before. In the last two cases the body is never called.
    nonisolated(nonsending) public func performAndWait<Success: Sendable>(
        _ body: @escaping @Sendable () throws -> Success
    ) async throws -> Success {
        try checkAccepts()
        return try await loop.performAndWait(in: [.common], body)
    }

    /// Refuses calls after a stop. A call at the same moment may be executed or refused: when the loop ends, it drops
    /// what it has not begun, and reports that to the waiting caller.
    private func checkAccepts() throws(RunLoopError) {
        if !isCurrent, state.withLock({ $0.isStopping }) { throw RunLoopError(.threadEnded) }
    }
}

// MARK: - Ending

extension ResidentThread {
    /// Makes the thread end after the tasks that were posted before; later ones are refused.
    ///
    /// Returns at once, and may be called on the thread itself and repeatedly. After those tasks, every run of the loop
    /// that is in progress is stopped, nested ones too: a task that waits in a nested run continues. Then the waiting
    /// jobs of actors and tasks are run, and the loop ends: sources are cancelled, timers and observers dropped, and
    /// blocks that were posted to the loop itself meanwhile are released without being called.
    ///
    /// A task that never returns prevents the thread from ending. So do jobs that always make another: an actor or a
    /// task of this loop that never finishes and never waits for anything else meanwhile.
    public func stop() {
        let (loop, keepAliveSource) = (loop, keepAliveSource)
        state.withLock { state in
            if state.isStopping { return }
            state.isStopping = true
            loop.perform(in: [.common], name: "thread stop") {
                keepAliveSource.invalidate()
                loop.stopAllRuns()
            }
        }
    }

    /// Blocks until the thread is gone and its loop has ended. ``stop()`` must be called elsewhere.
    ///
    /// Several threads may wait, and later calls return at once. Traps on the thread itself. Whatever prevents the
    /// thread from ending, as described at ``stop()``, prevents a call without a limit from returning.
    ///
    /// - Parameter limit: the longest time; nil for no limit, zero or less to only check. The loop has ended within it.
    /// - Returns: whether the thread is gone.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    @discardableResult
    public func join(within limit: Duration? = nil) -> Bool {
        let deadline = joinDeadline(limit)
        return loopDidEnd.wait(until: deadline) && joinEndedThread(until: deadline)
    }

    /// Suspends the task until the thread is gone and its loop has ended. ``stop()`` must be called elsewhere.
    ///
    /// Otherwise as the blocking form. Traps in a task that runs on the thread itself.
    ///
    /// - Parameter limit: the longest time; nil for no limit, zero or less to only check. The loop has ended within it.
    /// - Returns: whether the thread is gone; false, too, when the task was cancelled before.
    @discardableResult
    nonisolated(nonsending) public func join(within limit: Duration? = nil) async -> Bool {
        // Once its loop has ended the thread exits, and executes no code of the program.
        await loopDidEnd.wait(until: joinDeadline(limit)) && joinEndedThread(until: .distantFuture)
    }

    private func joinDeadline(_ limit: Duration?) -> MonotonicInstant {
        if loop.isCurrent {
            fatalError(
                "A resident thread cannot wait for its own end. Call `stop` there, and `join` on another thread.")
        }
        return limit.map { $0 <= .zero ? .distantPast : .after($0) } ?? .distantFuture
    }

    private func joinEndedThread(until deadline: MonotonicInstant) -> Bool {
        guard let thread = state.withLock({ $0.thread.take() }) else { return threadDidEnd.wait(until: deadline) }
        thread.join()
        threadDidEnd.set()
        return true
    }
}

extension ThreadRunLoop {
    /// Stops every run that is in progress, nested ones and those below them.
    func stopAllRuns() {
        state.withLock { $0.stopAllRuns() }
        parker.endWait()
    }
}
