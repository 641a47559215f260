// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@Suite(.leakCheck) struct MainQueueDifferenceTests {
    @Test("D32: beside a source that is always ready, CFRunLoop serves the main queue at once, ThreadRunLoop soon")
    func stream() async throws {
        for (loop, expected) in [("cf", "at once\nstopped\n"), ("ours", "later\nstopped\n")] {
            let peer = try ChildProcess(try builtProduct("main-loop-peer"), ["stream", loop])
            peer.closeInput()
            let result = try await peer.waitForExit()
            #expect(result.end == .exited(0))
            #expect(result.output == expected)
        }
    }
}
