// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Testing

@Suite("SendDeadline") struct SendDeadlineTests {
    @Test("a limit begins when the deadline is first asked for, and stays what it is then")
    func fixed() {
        var deadline = SendDeadline.after(.seconds(100))
        let before = MonotonicInstant.now
        let first = deadline.fix()
        #expect(before.duration(to: first) >= .seconds(100))
        while MonotonicInstant.now == before {}
        #expect(deadline.fix() == first)
        #expect(deadline.instant == first)
    }

    @Test("a limit of nothing, and a moment before all others, do not wait")
    func waits() {
        #expect(SendDeadline.after(.seconds(1)).mayWait && SendDeadline.instant(.distantFuture).mayWait)
        #expect(!SendDeadline.after(.zero).mayWait && !SendDeadline.after(.seconds(-1)).mayWait)
        #expect(!SendDeadline.never.mayWait)
    }
}
