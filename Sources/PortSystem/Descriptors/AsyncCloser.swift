// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How long close(2) takes depends on the open file: a TCP socket may linger, a file's file system may not answer. So a
// descriptor that a peer has sent is closed by a thread for that purpose, and so is a socket with a peer's unread
// packets, which may contain such files.

import Synchronization

/// Is notified how many descriptors of another process wait to be closed: closing may be slower than receiving.
package protocol CloseObserver: AnyObject, Sendable {
    /// A descriptor is no longer used. Called where its last reference is released, possibly under a lock of the
    /// caller's.
    func willClose()
    /// That descriptor is closed. Called once for each `willClose`, with no lock of this file held.
    func didClose()
}

/// Closes descriptors that came from other processes, on a thread that does nothing else.
///
/// The thread starts with the first such descriptor and stays. A thread that a file blocks for a second is replaced
/// when the next descriptor comes, and ends when that close returns. While no thread can be started, the thread that
/// releases a descriptor closes all that wait. A forked child, in which the thread may have left its lock held, closes
/// its descriptors where they are released.
package enum AsyncCloser {
    private struct State {
        /// The descriptors to close after those in `next`, in the order in which they came: so no peer's descriptors
        /// wait forever behind those of others.
        var waiting: [PendingClose] = []
        /// The descriptors to close next, from the end.
        var next: [PendingClose] = []
        /// Wakes the thread that closes them; nil while there is no such thread. A thread whose event this is not any
        /// more has been replaced.
        var worker: ThreadEvent?
        /// Since when the worker has been closing one.
        var busySince: MonotonicInstant?
        var blockedCount = 0
        /// How many callers close descriptors themselves, because no thread can be started.
        var callerCount = 0
        /// A test makes everything wait.
        var isSuspended = false

        mutating func popFirst() -> PendingClose? {
            if next.isEmpty { (next, waiting) = (waiting.reversed(), []) }
            return next.popLast()
        }

        var isBlocked: Bool { busySince.map { $0.advanced(by: Tuning.longestClose) < .now } ?? false }
    }

    private struct PendingClose {
        let descriptor: CInt
        let closeObserver: (any CloseObserver)?

        func perform() {
            sysCloseForeign(descriptor)
            closeObserver?.didClose()
        }
    }

    private static let state = Mutex(State())
    /// Of the process that first had something to close.
    private static let forkGuard = ForkGuard()

    /// Whether nothing is being closed, and nothing waits for that.
    package static var isIdle: Bool {
        state.withLock { state in
            state.waiting.isEmpty && state.next.isEmpty && state.busySince == nil && state.blockedCount == 0
                && state.callerCount == 0
        }
    }

    /// Starts the thread, unless it has started.
    package static func start() { wake(nil) }

    /// Closes a descriptor, soon. Never waits.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor.
    ///   - closeObserver: the observer to notify that it waits, and that it is closed.
    static func close(_ descriptor: CInt, of closeObserver: (any CloseObserver)? = nil) {
        if forkGuard.isInherited { return sysCloseForeign(descriptor) }
        closeObserver?.willClose()
        wake(PendingClose(descriptor: descriptor, closeObserver: closeObserver))
    }

    #if PORT_FAULTS
    /// Closes nothing while `body` runs: so a test can see what waits.
    package static func suspended<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        state.withLock { $0.isSuspended = true }
        defer {
            state.withLock { $0.isSuspended = false }
            wake(nil)
        }
        return try body()
    }
    #endif

    private static func wake(_ closing: PendingClose?) {
        let (worker, isNew) = state.withLock { state -> (ThreadEvent?, Bool) in
            if let closing { state.waiting.append(closing) }
            if let worker = state.worker {
                if !state.isBlocked { return (worker, false) }
                if state.blockedCount == Tuning.blockedClosers { return (nil, false) }
                state.blockedCount += 1
            }
            let made = ThreadEvent()
            (state.worker, state.busySince) = (made, nil)
            return (made, true)
        }
        guard let worker else { return }
        worker.set()
        guard isNew else { return }
        do throws(SystemError) {
            _ = try sysStartThread(blocksSignals: true) { run(worker) }
        } catch {
            // Without a thread the caller does the work; the next call tries to start one again.
            closeHere()
        }
    }

    /// The worker's thread could not be started: this caller and later ones, which find no worker, close what waits. One
    /// by one: when a file blocks this caller, the next caller closes the rest.
    private static func closeHere() {
        state.withLock { state in
            state.worker = nil
            state.callerCount += 1
        }
        while let closing = state.withLock({ $0.isSuspended ? nil : $0.popFirst() }) { closing.perform() }
        state.withLock { $0.callerCount -= 1 }
    }

    private static func run(_ worker: ThreadEvent) {
        sysNameThread("port-closer")
        while state.withLock({ $0.worker === worker }) {
            worker.clear()
            while let closing = next(for: worker) { closing.perform() }
            if state.withLock({ $0.worker === worker }) { worker.wait(until: .distantFuture) }
        }
        state.withLock { $0.blockedCount -= 1 }
    }

    /// - Returns: what the worker closes now; nil when there is nothing, or another worker has replaced it.
    private static func next(for worker: ThreadEvent) -> PendingClose? {
        state.withLock { state in
            guard state.worker === worker else { return nil }
            let closing = state.isSuspended ? nil : state.popFirst()
            state.busySince = closing == nil ? nil : .now
            return closing
        }
    }
}
