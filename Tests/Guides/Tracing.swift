// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

func tracingNames(_ loop: ThreadRunLoop, beat: @escaping @Sendable () -> Void, save: @escaping @Sendable () -> Void) {
    let timer = RunLoopTimer(name: "heartbeat", after: .seconds(2), interval: .seconds(2)) { _ in beat() }
    loop.add(timer)
    loop.perform(name: "save") { save() }
    print(timer, loop)  // timer "heartbeat" #12 run loop of the main thread 4707
}

func tracingLoops() throws {
    let tracer = RunLoopTracer()
    tracer.attach(to: .main)
    // … the program goes on …
    tracer.detach(from: .main)
    print(tracer.activityTrace)

    let file = open("loops.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    try tracer.writeChromeTrace(to: file)
}

func tracingFromOutside() throws -> TraceService {
    let service = try TraceService.start()  // as long as the object lives
    return service
}

func tracingStalls(log: @escaping @Sendable (String) -> Void) throws -> RunLoopStallMonitor {
    let monitor = try RunLoopStallMonitor(of: .main, threshold: .milliseconds(250)) { stall in
        log("\(stall)")
    }
    return monitor
}

/// Does all of the page, and lets its save end the loop, which `portctl trace` records.
func tracing() throws {
    let service = try tracingFromOutside()
    defer { service.stop() }
    let monitor = try tracingStalls { print($0) }
    defer { monitor.invalidate() }
    tracingNames(.main, beat: {}, save: { ThreadRunLoop.main.stop() })
    ThreadRunLoop.main.run()
    try tracingLoops()
}
