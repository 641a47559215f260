// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Testing

@testable import RunLoopCore

@Suite struct SmallListTests {
    @Test("it holds what an array holds, whatever is appended and removed", arguments: 0...4)
    func model(count: Int) {
        for removed in 0...count {
            var list = SmallList<Int>()
            var model: [Int] = []
            for number in 0..<count {
                list.append(number)
                model.append(number)
            }
            #expect(Array(list) == model)
            list.removeAll { $0 == removed || $0 == removed + 1 }
            model.removeAll { $0 == removed || $0 == removed + 1 }
            #expect(Array(list) == model)
            list.append(9)
            #expect(Array(list) == model + [9])
            #expect(list.count == model.count + 1 && list.last == 9)
        }
    }

    @Test("a list of objects takes two words at most, empty or not")
    func size() {
        #expect(MemoryLayout<SmallList<ThreadRunLoop>?>.size <= 2 * MemoryLayout<Int>.size)
    }
}
