// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A monitor reports when a handler keeps the main run loop busy for too long.

import Foundation
import RunLoopCore

do {
    let loop = ThreadRunLoop.main
    let reported = DispatchSemaphore(value: 0)

    let monitor = try RunLoopStallMonitor(of: loop, threshold: .milliseconds(100)) { stall in
        let what = stall.callout.map { "\($0)" } ?? "no handler"
        print(stall.isOver ? "over: it was \(what)" : "the main loop is stuck in \(what)")
        print("  \(stall)")
        reported.signal()
    }

    loop.perform(name: "quick") { print("a quick handler") }
    loop.perform(name: "save") {
        print("a slow handler")
        reported.wait()  // as slow as it must be to be reported
    }
    loop.perform(name: "last") {
        print("the handlers have returned")
        loop.stop()
    }
    loop.run()

    reported.wait()
    monitor.invalidate()
} catch {
    FileHandle.standardError.write(Data("stalls: \(error)\n".utf8))
    exit(1)
}
