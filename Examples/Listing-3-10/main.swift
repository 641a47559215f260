// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listings 3-10 and 3-11: timers, made and added in two steps or at once; in one mode, or in the common modes.

import Foundation
import RunLoopCore

/// Counts the firings of a timer, and invalidates it at the last.
func fired(_ timer: RunLoopTimer, _ count: LoopBound<Int>, last: Int) {
    count.value += 1
    if count.value == last { timer.invalidate() }
}

func listing310() {
    let myRunLoop = ThreadRunLoop.current
    let (count1, count2) = (LoopBound(0), LoopBound(0))

    // Create and schedule the first timer.
    let futureDate = MonotonicInstant.after(.seconds(1))
    let myTimer = RunLoopTimer(fireDate: futureDate, interval: .milliseconds(100)) { timer in
        fired(timer, count1, last: 3)
    }
    myRunLoop.add(myTimer, to: .default)

    // Create and schedule the second timer.
    myRunLoop.add(
        RunLoopTimer(after: .milliseconds(200), interval: .milliseconds(200)) { timer in
            fired(timer, count2, last: 2)
        })

    let result = myRunLoop.run(for: .seconds(10))
    print("listing 3-10: after 1 s, then every 0.1 s: \(count1.value) times")
    print("listing 3-10: every 0.2 s: \(count2.value) times")
    print("listing 3-10: the run returned: \(result)")
}

func listing311() {
    let myRunLoop = ThreadRunLoop.current
    let count = LoopBound(0)
    let timer = RunLoopTimer(after: .milliseconds(100), interval: .milliseconds(300)) { timer in
        print("listing 3-11: fired in mode \(myRunLoop.currentMode.map { "\($0)" } ?? "none")")
        fired(timer, count, last: 2)
        myRunLoop.stop()
    }
    myRunLoop.add(timer, to: .common)

    // Not in the chapter: a mode is common once it was added to the loop's common modes, and then has the timer too.
    myRunLoop.addCommonMode(.eventTracking)
    for mode in [RunLoopMode.default, .eventTracking] {
        let result = myRunLoop.run(mode: mode, for: .seconds(10))
        print("listing 3-11: the run returned: \(result)")
    }
}

// A thread of its own: the main thread's loop serves the main dispatch queue too, so it never runs out of sources.
Thread.detachNewThread {
    listing310()
    listing311()
    ThreadRunLoop.main.stop()
}
ThreadRunLoop.main.run()
