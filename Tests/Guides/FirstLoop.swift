// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore

func firstLoop() throws {
    let loop = ThreadRunLoop.main
    let count = LoopBound(0)
    let timer = RunLoopTimer(after: .milliseconds(10), interval: .milliseconds(10)) { timer in
        count.value += 1
        print("tick \(count.value)")
        if count.value == 3 {
            timer.invalidate()
            loop.stop()
        }
    }
    loop.add(timer)
    print("the run is over: \(loop.run())")

    let worker = try ResidentThread(name: "worker")
    let sum = try worker.performAndWait(within: .seconds(10)) { (1...100).reduce(0, +) }
    print("the worker says \(sum)")

    try worker.perform {
        let product = (1...10).reduce(1, *)
        loop.perform {
            print("later it says \(product)")
            loop.stop()
        }
    }
    print("the run is over: \(loop.run(for: .seconds(10)))")

    worker.stop()
    worker.join()
    print("the worker is gone")
}
