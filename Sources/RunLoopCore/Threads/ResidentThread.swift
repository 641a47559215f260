// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem
import Synchronization

/// A thread with a run loop that stays until it is stopped, and executes tasks.
///
/// Its loop runs in the default mode. A source of its own keeps it alive: neither `stop()` of the loop nor removing
/// everything else ends it. It ends after ``stop()``, or when this object is released: it executes what was posted
/// before, ends its loop, and is gone. ``join(within:)`` waits for that. A reference to ``loop`` does not keep the
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
    let keeper: RunLoopSource  // guards itself; valid until the thread is to leave
    let loopDidEnd: ThreadEvent  // guards itself
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
        let (start, keeper, loopDidEnd) = (Start(), RunLoopSource {}, ThreadEvent())
        let thread = try sysStartThread(stackSize: stackSize, blocksSignals: true) {
            sysNameThread(name)
            let loop = ThreadRunLoop.current
            loop.add(keeper, to: .common)
            start.loop.withLock { $0 = loop }
            start.isKnown.set()
            while keeper.isValid { loop.run() }
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
        self.keeper = keeper
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
