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

    @Test("the blocks of requests can be taken back, and the others keep their places")
    func removal() {
        let seen = Recorder<Int>()
        let ids = (0..<6).map { _ in ItemID() }
        var queue = BlockQueue()
        for number in 0..<6 {
            queue.append({ seen.append(number) }, id: ids[number], modes: [number.isMultiple(of: 2) ? "a" : "b"])
            queue.append({ seen.append(number + 10) }, modes: ["a"])
        }
        let counts = [queue.remove([ids[1], ids[2], ItemID()]).count, queue.remove([ids[1]]).count]
        #expect(counts == [2, 0])
        for mode in ["a", "b"] as [RunLoopMode] {
            call(queue.take(for: mode, isCommon: false))
        }
        #expect(seen.elements == [0, 10, 11, 12, 13, 4, 14, 15, 3, 5])
    }

    @Test("a block for the common modes matches a mode that is common when it is looked at")
    func common() {
        var queue = BlockQueue()
        queue.append({}, modes: [.common])
        let counts = [queue.take(for: "a", isCommon: false).count, queue.take(for: "a", isCommon: true).count]
        #expect(counts == [0, 1])
    }
}
