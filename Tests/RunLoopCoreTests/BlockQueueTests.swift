// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@testable import RunLoopCore

@Suite struct BlockQueueTests {
    private func call(_ items: [BlockQueue.Item]) {
        for case .block(let entry) in items { entry.block() }
    }

    @Test("blocks of a mode come out in order, those of other modes keep their places")
    func order() {
        let seen = Recorder<Int>()
        var queue = BlockQueue()
        for number in 0..<6 {
            queue.append({ seen.append(number) }, modes: number.isMultiple(of: 2) ? ["a"] : ["b"])
        }
        queue.append({ seen.append(6) }, modes: ["a", "b"])
        #expect(queue.hasBlock(for: "a", isCommon: false))
        #expect(!queue.hasBlock(for: "c", isCommon: true))
        call(queue.take(for: "a", isCommon: false))
        #expect(seen.takeAll() == [0, 2, 4, 6])
        call(queue.take(for: "b", isCommon: false))
        #expect(seen.takeAll() == [1, 3, 5])
        #expect(queue.isEmpty)
    }

    @Test("a block for the common modes matches a mode that is common when it is looked at")
    func common() {
        var queue = BlockQueue()
        queue.append({}, modes: [.common])
        let counts = [queue.take(for: "a", isCommon: false).count, queue.take(for: "a", isCommon: true).count]
        #expect(counts == [0, 1])
    }
}
