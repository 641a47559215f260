// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import Foundation
import RunLoopCore
import Runtime
import Synchronization

/// The main queue as the tools see it that observe a loop: a monitor's report, a trace, and a stack.
func monitor(_ loop: any MainLoop) {
    let seen = Seen()
    let tracer = RunLoopTracer()
    tracer.attach(to: .main)
    guard let monitor = try? RunLoopStallMonitor(threshold: .milliseconds(20), { seen.append($0) }) else {
        return say("no monitor")
    }
    // A slow machine may report a stall before the queue is served; then the next block is reported.
    while seen.culprits(isOver: false).isEmpty {
        DispatchQueue.main.async {
            seen.waitForReport()
            loop.stop()
        }
        _ = loop.run(30, mode: nil)
    }
    monitor.invalidate()
    say(seen.culprits(isOver: false).first ?? "none")
    let begun = tracer.events.contains { event in
        if case .calloutBegin(let callout) = event.kind { callout.kind == .mainDispatchQueue } else { false }
    }
    say("traced \(begun)")
    DispatchQueue.main.async {
        let frames = (try? Backtrace.capture())?.symbolicated()?.frames
        let names = frames?.compactMap(\.symbol?.name) ?? []
        // The thread sanitizer's own frames between the two cannot be walked.
        let isSanitized = dlsym(nil, "__tsan_init") != nil
        let isSeen = names.contains { $0.contains("RUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE") }
        say("stack \(isSeen || isSanitized)")
        loop.stop()
    }
    say(loop.run(30, mode: nil))
}

private final class Seen: Sendable {
    private let reports = Mutex<[RunLoopStall]>([])
    private let report = DispatchSemaphore(value: 0)

    func append(_ stall: RunLoopStall) {
        reports.withLock { $0.append(stall) }
        if !stall.isOver { report.signal() }
    }

    func waitForReport() { report.wait() }

    /// What was reported of the main queue.
    func culprits(isOver: Bool) -> [String] {
        reports.withLock { $0.filter { $0.isOver == isOver && $0.callout?.kind == .mainDispatchQueue } }
            .map { "\($0.callout?.description ?? "nothing") in \($0.mode)" }
    }
}
