// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck(settles: true)) struct ExecutorLifeTests {
    /// Where a task has come to, and how often its loop had slept then.
    private struct Pause: Sendable {
        let goOn: CheckedContinuation<Void, Never>
        let sleeps: Int
    }

    @Test("a loop whose thread a job has ended lives until the thread that posted the job has woken it")
    func lastJob() async throws {
        try await onNewThread {
            let pauses = Recorder<Pause>("pauses")
            let loops = Recorder<@Sendable () -> ThreadRunLoop?>("loops")
            let pipe = try TestPipe(isBlocking: false)
            let thread = runOnThread {
                let loop = ThreadRunLoop.current
                loop.waitStrategy = .blocking
                loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) { _ = try? pipe.take() })
                loops.append { [weak loop] in loop }
                Task(executorPreference: loop) {
                    await withCheckedContinuation { pauses.append(Pause(goOn: $0, sleeps: loop.waitCounts.sleeps)) }
                    loop.stop()
                }
                return loop.runGuarded()
            }
            let (loop, pause) = (loops.waitUntilCount(1)[0], pauses.waitUntilCount(1)[0])
            let deadline = Watchdog.deadline
            while loop()?.waitCounts.sleeps == pause.sleeps, .now < deadline { yieldThread() }

            // The job is in the loop, which is about to be woken for it. Meanwhile the loop wakes by its pipe: the
            // task, which alone holds the loop besides its thread, ends then.
            let isThere = Recorder<Bool>("checks")
            let rule = SystemCallFaults.Rule(
                .write,
                .precede {
                    try? pipe.put()
                    _ = try? thread.join()
                    isThere.append(loop() != nil)
                })
            let (_, hits) = SystemCallFaults.with([rule]) { pause.goOn.resume() }
            #expect(hits == 1)
            #expect(isThere.elements == [true])
            #expect(loop() == nil)
            #expect(try thread.join() == .stopped)
        }
    }
}
#endif
