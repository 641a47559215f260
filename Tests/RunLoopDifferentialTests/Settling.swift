// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

/// A trait: the test is over when everything that it made is gone. A run of a CFRunLoop with a limit has a dispatch
/// timer, which releases the loop, and so its descriptors, on another thread, after the loop's thread has ended. The
/// leak check, outside of this, reports what stays.
struct Settling: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Settling? {
        testCase == nil ? nil : self
    }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        let before = ProcessState(threadNames: [])
        try await function()
        let deadline = Watchdog.deadline
        while !ProcessState(threadNames: []).differences(from: before).isEmpty, MonotonicInstant.now < deadline {
            await Task.yield()
        }
    }
}
