// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Listing 3-1: a thread adds an observer and a timer to its run loop, and runs it ten times.

import Foundation
import RunLoopCore

func threadMain() {
    let myRunLoop = ThreadRunLoop.current
    let seen = LoopBound<[String]>([])

    // Create a run loop observer and attach it to the run loop.
    let observer = RunLoopObserver(activities: .all) { _, activity in
        seen.value.append("\(activity) (\(activity.rawValue))")
    }
    myRunLoop.add(observer, to: .default)

    // Create and schedule the timer.
    let timer = RunLoopTimer(after: .milliseconds(100), interval: .milliseconds(100)) { _ in
        seen.value.append("timer")
        myRunLoop.stop()  // not in the chapter: see README.md
    }
    myRunLoop.add(timer)

    var loopCount = 10
    repeat {
        // Run the run loop 10 times to let the timer fire.
        let result = myRunLoop.run(for: .seconds(1))
        print("\(result): \(seen.value.joined(separator: ", "))")
        seen.value = []
        loopCount -= 1
    } while loopCount > 0
}

Thread.detachNewThread {
    threadMain()
    ThreadRunLoop.main.stop()
}
ThreadRunLoop.main.run()
