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
    /// A descriptor stays for as long as others decide. Called where it was received, before `willClose`.
    func willRetain()
    /// One that stayed is closed. Called once for each `willRetain`, after `didClose`, with no lock of this file held.
    func didCloseRetained()
}

extension CloseObserver {
    package func willRetain() {}
    package func didCloseRetained() {}
}

/// Closes descriptors that came from other processes, on a thread that does nothing else.
///
/// The thread starts with the first such descriptor and stays. When a file has blocked it for a second while others wait,
/// a second thread, which starts with the first of those, replaces it; when that close returns it waits to replace the
/// other one, or ends if there is a third for that. While no thread can be started, the thread that releases a
/// descriptor closes all that wait. A forked child, in which the thread may have left its lock held, closes its
/// descriptors where they are released.
///
/// The ends of pipes that count rights have such a thread of their own, so that no other file delays the notice that the
/// last right is gone.
package enum AsyncCloser {
    private static let files = FileCloser("port-closer")
    private static let pipes = FileCloser("port-pipes")
    /// Of the process that first had something to close.
    private static let forkGuard = ForkGuard()

    /// Whether nothing is being closed, and nothing waits for that.
    package static var isIdle: Bool { files.isIdle && pipes.isIdle }

    /// Starts the threads, unless they have started.
    package static func start() { for closer in [files, pipes] { closer.start() } }

    /// Closes a descriptor, soon. Never waits.
    ///
    /// - Parameters:
    ///   - descriptor: the descriptor.
    ///   - closeObserver: the observer to notify that it waits, and that it is closed.
    ///   - isPipe: whether it is for certain a pipe.
    ///   - isRetained: whether the observer was notified that it stays.
    static func close(
        _ descriptor: CInt, of closeObserver: (any CloseObserver)? = nil, isPipe: Bool = false, isRetained: Bool = false
    ) {
        if forkGuard.isInherited { return sysCloseForeign(descriptor) }
        closeObserver?.willClose()
        (isPipe ? pipes : files).wake(
            FileCloser.PendingClose(descriptor: descriptor, closeObserver: closeObserver, isRetained: isRetained))
    }

    #if PORT_FAULTS
    /// Closes nothing while `body` runs: so a test can see what waits.
    package static func suspended<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        for closer in [files, pipes] { closer.setSuspended(true) }
        defer { for closer in [files, pipes] { closer.setSuspended(false) } }
        return try body()
    }
    #endif
}

/// The threads, and what waits for them.
///
/// One closes, another replaces it when a file has blocked it for too long, and nobody else may be there to notice: it
/// waits for that only while something is queued behind a close.
private final class FileCloser: Sendable {
    /// What a thread does next.
    private enum Step {
        case close(PendingClose)
        case wait(until: MonotonicInstant)
        /// It has been replaced, and there is another to replace the worker, which can do so now.
        case end(waking: ThreadEvent)
    }

    private struct State {
        /// The descriptors to close after those in `next`, in the order in which they came: so no peer's descriptors
        /// wait forever behind those of others.
        var waiting: [PendingClose] = []
        /// The descriptors to close next, from the end.
        var next: [PendingClose] = []
        /// Wakes the thread that closes them; nil while there is no such thread. A thread whose event this is not any
        /// more has been replaced.
        var worker: ThreadEvent?
        /// Wakes the thread that is to replace the worker; nil while there is none.
        var reserve: ThreadEvent?
        /// Whether the reserve checks again as soon as the worker may be blocked.
        var isReserveWatching = false
        /// Since when the worker has been closing one.
        var busySince: MonotonicInstant?
        var blockedCount = 0
        /// How many callers close descriptors themselves, because no thread can be started.
        var callerCount = 0
        /// A test makes everything wait.
        var isSuspended = false

        mutating func popFirst() -> PendingClose? {
            if isSuspended { return nil }
            if next.isEmpty { (next, waiting) = (waiting.reversed(), []) }
            return next.popLast()
        }

        var hasWaiting: Bool { !(waiting.isEmpty && next.isEmpty) }

        /// When the worker counts as blocked by the file that it closes; nil while it closes none.
        var blockedAt: MonotonicInstant? { busySince?.advanced(by: Tuning.longestClose) }

        /// Others wait behind a close.
        ///
        /// - Returns: what wakes the reserve, unless that watches, and whether its thread is to be started.
        mutating func reserveToWake() -> (ThreadEvent?, isNew: Bool) {
            if isReserveWatching || !hasWaiting || busySince == nil { return (nil, false) }
            if let reserve { return (reserve, false) }
            reserve = ThreadEvent()
            return (reserve, true)
        }

        /// Makes the thread with the event the worker.
        mutating func replaceWorker(with event: ThreadEvent) {
            if worker != nil { blockedCount += 1 }
            if reserve === event { (reserve, isReserveWatching) = (nil, false) }
            (worker, busySince) = (event, nil)
        }

        /// What the thread with the event does next.
        mutating func step(of event: ThreadEvent) -> Step {
            if worker !== event, reserve !== event {
                // The file that blocked it is closed.
                blockedCount -= 1
                if let reserve { return .end(waking: reserve) }
                reserve = event
            }
            if reserve === event {
                isReserveWatching = false
                guard hasWaiting, let blockedAt, blockedCount < Tuning.blockedClosers else {
                    return .wait(until: .distantFuture)
                }
                if blockedAt > .now {
                    isReserveWatching = true
                    return .wait(until: blockedAt)
                }
                replaceWorker(with: event)
            }
            let closing = popFirst()
            busySince = closing == nil ? nil : .now
            return closing.map { .close($0) } ?? .wait(until: .distantFuture)
        }
    }

    struct PendingClose {
        let descriptor: CInt
        let closeObserver: (any CloseObserver)?
        /// Whether it is counted as one that stays with a right.
        let isRetained: Bool

        func perform() {
            sysCloseForeign(descriptor)
            closeObserver?.didClose()
            if isRetained { closeObserver?.didCloseRetained() }
        }
    }

    private let state = Mutex(State())
    private let name: String  // immutable

    init(_ name: String) { self.name = name }

    var isIdle: Bool {
        state.withLock { state in
            !state.hasWaiting && state.busySince == nil && state.blockedCount == 0 && state.callerCount == 0
        }
    }

    #if PORT_FAULTS
    func setSuspended(_ isSuspended: Bool) {
        let isWaitedFor = state.withLock { state in
            state.isSuspended = isSuspended
            return !isSuspended && state.hasWaiting
        }
        if isWaitedFor { wake(nil) }
    }
    #endif

    /// Starts both threads, unless they have started.
    func start() {
        wake(nil)
        let made = state.withLock { state -> ThreadEvent? in
            if state.worker == nil || state.reserve != nil { return nil }
            state.reserve = ThreadEvent()
            return state.reserve
        }
        if let made { startThread(made) }
    }

    func wake(_ closing: PendingClose?) {
        let (woken, isNew) = state.withLock { state -> (ThreadEvent?, Bool) in
            if let closing { state.waiting.append(closing) }
            if let worker = state.worker {
                guard let blockedAt = state.blockedAt else { return (worker, false) }
                // It continues with what waits, unless its file blocks it: then the reserve does.
                if blockedAt > .now { return state.reserveToWake() }
                if state.blockedCount == Tuning.blockedClosers { return (nil, false) }
            }
            let known = state.reserve
            let next = known ?? ThreadEvent()
            state.replaceWorker(with: next)
            return (next, known == nil)
        }
        guard let woken else { return }
        woken.set()
        if isNew { startThread(woken) }
    }

    private func startThread(_ event: ThreadEvent) {
        do throws(SystemError) {
            _ = try sysStartThread(blocksSignals: true) { [self] in run(event) }
        } catch {
            let wasReserve = state.withLock { state in
                guard state.reserve === event else { return false }
                state.reserve = nil
                return true
            }
            // Without a thread the caller does the worker's work; the next call tries to start one again.
            if !wasReserve { closeHere() }
        }
    }

    /// The worker's thread could not be started: this caller and later ones, which find no worker, close what waits. One
    /// by one: when a file blocks this caller, the next caller closes the rest.
    private func closeHere() {
        state.withLock { state in
            state.worker = nil
            state.callerCount += 1
        }
        while let closing = state.withLock({ $0.popFirst() }) { closing.perform() }
        state.withLock { $0.callerCount -= 1 }
    }

    private func run(_ event: ThreadEvent) {
        sysNameThread(name)
        while true {
            switch state.withLock({ $0.step(of: event) }) {
            case .close(let closing):
                let (reserve, isNew) = state.withLock { $0.reserveToWake() }
                reserve?.set()
                if isNew, let reserve { startThread(reserve) }
                closing.perform()
            case .wait(let instant):
                event.wait(until: instant)
                event.clear()
            case .end(let reserve): return reserve.set()
            }
        }
    }
}
