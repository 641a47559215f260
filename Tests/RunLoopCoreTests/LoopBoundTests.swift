// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct LoopBoundTests {
    private final class NotSendable {
        var count = 0
    }

    @Test("a handler may use state that is not Sendable, on the loop's thread")
    func value() async throws {
        try await onLoop { loop in
            let box = LoopBound(NotSendable())
            let numbers = LoopBound([1])
            #expect(box.loop == loop)
            loop.perform {
                box.value.count += 1
                numbers.value.append(2)
            }
            #expect(loop.runGuarded() == .finished)
            #expect(box.value.count == 1)
            #expect(numbers.value == [1, 2])
            let copy = numbers
            copy.value = []
            #expect(numbers.value.isEmpty)
        }
    }
}
