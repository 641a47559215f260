// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import Testing

/// Ends the process with a sentence that names the test, when a test goes on for five times the watchdog's limit. Swift
/// Testing's time limit would include the wait for other tests, and cannot end a thread that blocks. It also reports
/// what this process and its descendants are doing: the machine may not be accessible afterwards.
final class HangAlarm: Sendable {
    private let ended: ThreadEvent
    private let thread: TestThread<Void>?

    init(_ name: String, _ sourceLocation: SourceLocation) {
        let ended = ThreadEvent()
        self.ended = ended
        guard let limit = Watchdog.limit else {
            thread = nil
            return
        }
        thread = runOnThread(name: "hang-alarm") {
            if ended.wait(until: .after(limit * 5)) { return }
            alarm(120)  // in case the report hangs, too
            let sentence = "The test \(name) at \(sourceLocation) hangs: it ran for \(limit * 5)."
            let processes = ["self"] + descendants(of: "self")
            let lines = [sentence] + processes.flatMap(whatThreadsAreAt)
            try? FileHandle.standardError.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
            abort()
        }
    }

    func stop() async {
        ended.set()
        _ = try? await thread?.join()
    }
}
