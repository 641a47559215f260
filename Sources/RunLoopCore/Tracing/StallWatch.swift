// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// The state that a stall monitor's thread shares with the loop that it watches. It refers to neither monitor nor loop.
final class StallWatch: RunLoopInstrument {
    private let state: Mutex<StallState>  // taken on the loop's thread for each event
    private let bell = ThreadEvent()  // guards itself
    private let hasEnded = Atomic<Bool>(false)
    /// Set when the monitor's thread accesses nothing more.
    let finished = ThreadEvent()  // guards itself
    private let looks = Atomic<Int>(0)  // written by the monitor's thread
    private let isReporting = Atomic<Bool>(false)  // written by the monitor's thread; set under the lock of `state`

    init(of loop: ThreadRunLoop, threshold: Duration) {
        state = Mutex(StallState(threadID: loop.threadID, threshold: threshold))
    }

    func note(_ event: RunLoopTraceEvent) {
        if state.withLock({ $0.note(event) }) { bell.set() }
    }

    func loopFallsIdle(at time: MonotonicInstant) {
        if state.withLock({ $0.becomeIdle(at: time) }) { bell.set() }
    }

    func loopDidEnd() {
        loopFallsIdle(at: .now)
    }

    /// Makes `watch` return.
    func end() {
        hasEnded.store(true, ordering: .releasing)
        bell.set()
    }

    /// Whether `end` was called.
    var isOver: Bool { hasEnded.load(ordering: .acquiring) }

    /// How often the monitor's thread has woken.
    var lookCount: Int { looks.load(ordering: .acquiring) }

    /// Whether the loop is idle and the monitor's thread has nothing left to do.
    var isIdle: Bool { state.withLock { $0.isIdle } && !isReporting.load(ordering: .acquiring) }

    /// Reports stalls until the end. For the monitor's thread.
    func watch(_ report: (RunLoopStall) -> Void) {
        defer { finished.set() }
        var next = MonotonicInstant.distantFuture
        while !isOver {
            bell.wait(until: next)
            // Clear first, then check: what a later wake-up announces is checked again.
            bell.clear()
            looks.store(looks.load(ordering: .relaxed) + 1, ordering: .releasing)
            let found = state.withLock { state in
                let found = state.look(at: .now)
                isReporting.store(!found.reports.isEmpty, ordering: .relaxed)
                return found
            }
            next = found.next
            for stall in found.reports where !isOver { report(stall) }
            isReporting.store(false, ordering: .releasing)
        }
    }
}
