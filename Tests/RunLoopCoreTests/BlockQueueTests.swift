// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@testable import RunLoopCore

@Suite struct BlockQueueTests {
    /// Calls the blocks that wait for a mode.
    private func call(_ queue: inout BlockQueue, _ mode: RunLoopMode, isCommon: Bool = false, upTo limit: UInt64 = .max)
    {
        while case .block(let entry) = queue.dequeueFirst(for: mode, isCommon: isCommon, upTo: limit) { entry.block() }
    }

    @Test("blocks of a mode come out in order, those of other modes keep their positions")
    func order() {
        let seen = Recorder<Int>()
        var queue = BlockQueue()
        for number in 0..<6 {
            queue.append({ seen.append(number) }, modes: number.isMultiple(of: 2) ? ["a"] : ["b"])
        }
        queue.append({ seen.append(6) }, modes: ["a", "b"])
        #expect(queue.hasBlock(for: "a", isCommon: false))
        #expect(!queue.hasBlock(for: "c", isCommon: true))
        call(&queue, "a")
        #expect(seen.takeAll() == [0, 2, 4, 6])
        call(&queue, "b")
        #expect(seen.takeAll() == [1, 3, 5])
        #expect(queue.isEmpty)
    }

    @Test("the blocks of requests can be withdrawn, and the others keep their positions")
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
            call(&queue, mode)
        }
        #expect(seen.elements == [0, 10, 11, 12, 13, 4, 14, 15, 3, 5])
    }

    @Test("a block for the common modes matches a mode that is common when it is checked")
    func common() {
        var queue = BlockQueue()
        queue.append({}, modes: [.common])
        #expect(!queue.hasBlock(for: "a", isCommon: false) && queue.hasBlock(for: "a", isCommon: true))
        let isTaken = [false, true].map { queue.dequeueFirst(for: "a", isCommon: $0) != nil }
        #expect(isTaken == [false, true])
    }

    @Test("a block for several modes, or for one that is named twice, is dequeued once")
    func severalModes() {
        let seen = Recorder<Int>()
        var queue = BlockQueue()
        queue.append({ seen.append(1) }, modes: ["a", "b", "a", .common])
        queue.append({ seen.append(2) }, modes: ["b"])
        queue.append({ seen.append(3) }, modes: ["a", .common])
        call(&queue, "b", isCommon: true)
        #expect(seen.elements == [1, 2, 3])
        #expect(queue.isEmpty && !queue.hasBlock(for: "a", isCommon: true))
        queue.append({ seen.append(4) }, modes: ["a"])
        call(&queue, "a", isCommon: true)
        #expect(seen.elements == [1, 2, 3, 4])
    }

    @Test("what is posted later than a limit waits")
    func limit() {
        let seen = Recorder<Int>()
        var queue = BlockQueue()
        queue.append({ seen.append(1) }, modes: ["a"])
        queue.append({ seen.append(2) }, modes: [.common])
        let limit = queue.lastStamp
        queue.append({ seen.append(3) }, modes: ["a"])
        call(&queue, "a", isCommon: true, upTo: limit)
        #expect(seen.elements == [1, 2])
        #expect(queue.hasBlock(for: "a", isCommon: false))
    }

    @Test("removed blocks do not occupy memory for long")
    func gaps() {
        let ids = (0..<10_000).map { _ in ItemID() }
        var queue = BlockQueue()
        queue.append({}, modes: ["a", .default])
        for id in ids {
            queue.append({}, id: id, modes: ["a", .default])
            _ = queue.remove([id])
            #expect(queue.lineLength <= 2 * (2 + 32))
        }
        for _ in ids { queue.append({}, modes: ["a", "b"]) }
        call(&queue, "b")
        #expect(queue.lineLength <= 2 * (2 + 32))
        call(&queue, "a")
        #expect(queue.lineLength == 0)
    }
}
