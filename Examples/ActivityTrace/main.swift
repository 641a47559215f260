// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// What a run loop does when it has only a repeating timer: the activity trace. portctl trace shows the same from
// outside.

import Foundation
import NamedPortServer

do {
    let service = try TraceService.start()  // for portctl trace
    defer { service.stop() }

    let loop = ThreadRunLoop.current
    let tracer = RunLoopTracer()
    tracer.attach(to: loop)

    let ticks = LoopBound(0)
    loop.add(
        RunLoopTimer(name: "tick", after: .milliseconds(200), interval: .milliseconds(200)) { timer in
            ticks.value += 1
            if ticks.value == 3 { loop.stop() }
        })
    loop.run()

    tracer.detach(from: loop)
    print(tracer.activityTrace, terminator: "")

    if CommandLine.arguments.count > 1 {
        let path = CommandLine.arguments[1]
        try tracer.chromeTrace.write(toFile: path, atomically: true, encoding: .utf8)
        print("\(path): open it in https://ui.perfetto.dev")
    }
} catch {
    FileHandle.standardError.write(Data("trace: \(error)\n".utf8))
    exit(1)
}
