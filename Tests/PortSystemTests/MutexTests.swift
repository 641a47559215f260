// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Not a test of Mutex: of its annotations for the thread sanitizer (Sources/CPortShims/thread_sanitizer.c). Without
// them, the sanitizer reports races in a test of this kind.

import Synchronization
import TestSupport
import Testing

@Suite("Mutex under the thread sanitizer", .leakCheck) struct MutexTests {
    private final class Shared: Sendable {
        let list = Mutex<[Int]>([])
    }

    @Test("threads that contend for a lock do not race")
    func contention() async throws {
        let shared = Shared()
        let threads = (0..<4).map { _ in
            runOnThread {
                for number in 0..<20_000 {
                    shared.list.withLock { list in
                        if list.count > 100 { list = [] }
                        list.append(number)
                    }
                    _ = shared.list.withLockIfAvailable { $0.count }
                }
            }
        }
        for thread in threads { try await thread.join() }
        #expect(shared.list.withLock { $0.count } > 0)
    }
}
