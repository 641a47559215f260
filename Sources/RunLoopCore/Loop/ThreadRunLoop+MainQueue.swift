// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// The main dispatch queue in the main thread's loop. A source in the common modes represents it, so a sleep ends
// when blocks arrive, and the loop has something to wait for in each common mode. It differs from other sources, always
// as in CFRunLoop: it has a step of its own in a pass (step 5), serving it does not count as a handled source, and it
// is not served recursively.
//
// libdispatch makes the descriptor readable with the first block that enters an empty queue, and runs the queued blocks
// when it is called. So the loop reads the descriptor and then calls it. Serving blocks that arrive while a block runs
// a nested loop is deferred: the descriptor is made readable again when the outer service has returned.

import PortSystem
import Synchronization

extension ThreadRunLoop {
    /// Adds the main queue to the common modes, before the main loop's first run. While its descriptor cannot be made,
    /// the loop tries again every 20 ms, and before each run.
    ///
    /// Where the system refuses eventfds, which libdispatch needs, the queue is not served: the loop reports that once,
    /// on standard error, and continues.
    func beginServingMainQueue() {
        if state.withLock({ $0.mainQueue != nil }) { return }
        let descriptor: CInt?
        do throws(SystemError) {
            descriptor = try sysMainQueueDescriptor()
        } catch {
            return serveMainQueueLater()
        }
        if descriptor == nil { sysWriteToStandardError(Self.mainQueueWarning) }
        let source = mainQueueSource(descriptor)
        state.withLock { $0.mainQueue = MainQueueState(source: source.id, descriptor: descriptor) }
        add(source, to: .common)
    }

    private static let mainQueueWarning =
        "The main run loop does not serve the main dispatch queue and the main actor: this system refuses eventfd(2), "
        + "which Dispatch needs. Allow that call, or run nothing on them.\n"

    private func mainQueueSource(_ descriptor: CInt?) -> RunLoopSource {
        guard let descriptor else { return RunLoopSource(name: "main queue (not served)") {} }
        // Before all others that the kernel reports together with it: at most 64.
        return RunLoopSource(name: "main queue", descriptor: descriptor, order: .min) {}
    }

    private func serveMainQueueLater() {
        let isFirst = state.withLock { state in
            defer { state.isMainQueueLate = true }
            return !state.isMainQueueLate
        }
        if !isFirst { return }
        let timer = RunLoopTimer(name: "main queue", after: Tuning.timeUntilRetry) { _ in
            let loop = ThreadRunLoop.current
            loop.state.withLock { $0.isMainQueueLate = false }
            loop.beginServingMainQueue()
        }
        add(timer, to: .common)
    }

    /// Whether blocks are queued that go before every event of the kernel: from a run's second pass on, but not twice
    /// in a row, and only when no signalled source and no timer is ready. So a stream of messages costs no system call.
    /// When nothing can observe whether the pass waits, this check is skipped: the wait reports the main queue before
    /// all others.
    func mainQueueGoesFirst(_ run: LoopRun) -> Bool {
        if run.hasJustServedMainQueue { return false }
        let descriptor = state.withLock { state -> CInt? in
            guard let queue = state.mainQueue, queue.service == .idle,
                state.registrations.registration(of: queue.source, in: run.mode) != nil,
                state.modes[run.mode].ready.isEmpty, !state.modes[run.mode].timers.isDue(at: .now)
            else { return nil }
            return queue.descriptor
        }
        guard let descriptor, (try? sysPoll(descriptor, .readable, until: .distantPast))?.isEmpty == false else {
            return false
        }
        parker.didWake()
        return true
    }

    /// Runs the blocks of the main queue, unless a service of it is already in progress further up the stack.
    func serveMainQueue(in mode: Int) {
        guard let (descriptor, mayServe) = state.withLock({ $0.beginMainQueue(in: mode) }) else { return }
        _ = try? sysDiscard(descriptor, 8)
        if !mayServe { return }
        RUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE()
        // So that the descriptor is readable again.
        if state.withLock({ $0.endMainQueue() }) { _ = try? sysWrite(descriptor, [1, 0, 0, 0, 0, 0, 0, 0]) }
    }
}
