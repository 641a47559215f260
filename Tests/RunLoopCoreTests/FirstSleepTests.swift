// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("the first sleep of a loop", .census) struct FirstSleepTests {
    private final class Flag: Sendable {
        let value = Atomic<Bool>(false)
    }

    @Test("a wake-up that comes while a loop makes its doorbell is not lost")
    func wakeUpDuringFirstSleep() async throws {
        for _ in 0..<300 {
            let (flag, started) = (Flag(), Flag())
            let loop = Mailslot()
            let thread = runOnThread {
                loop.put(.current)
                started.value.store(true, ordering: .sequentiallyConsistent)
                return ThreadRunLoop.current.run(
                    mode: .default, until: Watchdog.deadline,
                    while: { !flag.value.load(ordering: .sequentiallyConsistent) })
            }
            while !started.value.load(ordering: .sequentiallyConsistent) {}
            flag.value.store(true, ordering: .sequentiallyConsistent)
            loop.take()?.wakeUp()
            let result = try await thread.join()
            #expect(result == .handledSource)
        }
    }

    private final class Mailslot: Sendable {
        private let loop = Mutex<ThreadRunLoop?>(nil)
        func put(_ new: ThreadRunLoop) { loop.withLock { $0 = new } }
        func take() -> ThreadRunLoop? { loop.withLock { $0 } }
    }
}
