// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Each documented trap, with a part of the sentence that it prints.
@Suite(.census) struct RunLoopTrapTests {
    private func said(_ result: ExitTest.Result?, _ sentence: String, sourceLocation: SourceLocation = #_sourceLocation)
    {
        let errors = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(errors.contains(sentence), sourceLocation: sourceLocation)
    }

    @Test("running another thread's loop traps")
    func otherThread() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let loop = try await onNewThread { ThreadRunLoop.current }
            try await onNewThread { loop.run() }
        }
        said(result, "Running a loop is allowed on the thread of its run loop only.")
    }

    @Test("reading a loop-bound value on another thread traps")
    func loopBound() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let box = try await onNewThread { LoopBound(1) }
            box.value += 1
        }
        said(result, "Reading or changing a loop-bound value is allowed")
    }

    @Test("an interval of zero traps, as does a negative one", arguments: [0, -1])
    func interval(_ nanoseconds: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [nanoseconds] in
            _ = RunLoopTimer(after: .zero, interval: .nanoseconds(nanoseconds)) { _ in }
        }
        said(result, "needs an interval greater than zero")
    }

    @Test("a tracer without room, and one with too much, traps", arguments: [0, -1, RunLoopTracer.maximumCapacity + 1])
    func capacity(_ capacity: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [capacity] in
            _ = RunLoopTracer(capacity: capacity)
        }
        said(result, "A tracer keeps 1 to 1048576 events of a loop, not \(capacity).")
    }

    @Test("a stall monitor with a threshold of zero traps, as with a negative one", arguments: [0, -1])
    func threshold(_ nanoseconds: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [nanoseconds] in
            _ = try RunLoopStallMonitor(threshold: .nanoseconds(nanoseconds)) { _ in }
        }
        said(result, "A stall monitor needs a threshold greater than zero.")
    }

    @Test("signalling a port-based source traps")
    func signalPort() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            RunLoopSource(readiness: { true }) {}.signal()
        }
        said(result, "Use ring()")
    }

    @Test("ringing a custom source traps")
    func ringCustom() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            RunLoopSource {}.ring()
        }
        said(result, "Use signal()")
    }

    @Test("a custom source cannot watch a descriptor")
    func watchCustom() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try RunLoopSource {}.watch(0)
        }
        said(result, "Make a port-based source for it.")
    }

    @Test("adding a source whose descriptor cannot be watched traps")
    func badDescriptor() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            ThreadRunLoop.main.add(RunLoopSource(descriptor: 99_999) {})
        }
        said(result, "cannot watch a source's descriptor: Bad file descriptor")
    }

    @Test("a loop sleeps and is woken, though the process has no descriptor left")
    func noDescriptorLeft() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread {
                var limit = rlimit()
                getrlimit(__rlimit_resource_t(7), &limit)  // RLIMIT_NOFILE
                let allowed = limit.rlim_cur
                limit.rlim_cur = 0
                setrlimit(__rlimit_resource_t(7), &limit)
                let loop = ThreadRunLoop.current
                loop.waitStrategy = .blocking
                loop.add(RunLoopSource {})
                let waker = runOnThread {
                    while loop.waitCounts.sleeps == 0 { sched_yield() }
                    loop.stop()
                }
                let result = loop.run(until: Watchdog.deadline)
                try waker.join()
                // At the end of the process the leak sanitizer opens files.
                limit.rlim_cur = allowed
                setrlimit(__rlimit_resource_t(7), &limit)
                if result != .stopped { exit(1) }
            }
        }
    }
}
