// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Each documented trap, with a part of the sentence that it prints.
@Suite(.leakCheck) struct RunLoopTrapTests {
    @Test("running another thread's loop traps")
    func otherThread() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let loop = try await onNewThread { ThreadRunLoop.current }
            try await onNewThread { loop.run() }
        }
        expectSentence("Running a loop is allowed on the thread of its run loop only.", in: result)
    }

    @Test("reading a loop-bound value on another thread traps")
    func loopBound() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let box = try await onNewThread { LoopBound(1) }
            box.value += 1
        }
        expectSentence("Reading or changing a loop-bound value is allowed", in: result)
    }

    @Test("an interval of zero traps, as does a negative one", arguments: [0, -1])
    func interval(_ nanoseconds: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [nanoseconds] in
            _ = RunLoopTimer(after: .zero, interval: .nanoseconds(nanoseconds)) { _ in }
        }
        expectSentence("needs an interval greater than zero", in: result)
    }

    @Test("a tracer without room, and one with too much, traps", arguments: [0, -1, RunLoopTracer.maximumCapacity + 1])
    func capacity(_ capacity: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [capacity] in
            _ = RunLoopTracer(capacity: capacity)
        }
        expectSentence("A tracer keeps 1 to 1048576 events of a loop, not \(capacity).", in: result)
    }

    @Test("a stall monitor with a threshold of zero traps, as with a negative one", arguments: [0, -1])
    func threshold(_ nanoseconds: Int) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [nanoseconds] in
            _ = try RunLoopStallMonitor(threshold: .nanoseconds(nanoseconds)) { _ in }
        }
        expectSentence("A stall monitor needs a threshold greater than zero.", in: result)
    }

    @Test("signalling a port-based source traps")
    func signalPort() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            RunLoopSource(readiness: { true }) {}.signal()
        }
        expectSentence("Use ring()", in: result)
    }

    @Test("ringing a custom source traps")
    func ringCustom() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            RunLoopSource {}.ring()
        }
        expectSentence("Use signal()", in: result)
    }

    @Test("a custom source cannot watch a descriptor")
    func watchCustom() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            try RunLoopSource {}.watch(0)
        }
        expectSentence("Make a port-based source for it.", in: result)
    }

    @Test("adding a source whose descriptor cannot be watched traps")
    func badDescriptor() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            ThreadRunLoop.main.add(RunLoopSource(descriptor: 99_999) {})
        }
        expectSentence("cannot watch a source's descriptor: Bad file descriptor", in: result)
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
