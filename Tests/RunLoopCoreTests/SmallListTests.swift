// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Testing

@testable import RunLoopCore

@Suite struct SmallListTests {
    @Test("it holds what an array holds, whatever is appended and removed", arguments: 0...4)
    func model(count: Int) {
        for removed in 0...count {
            var list = SmallList<Number>()
            var model: [Int] = []
            for number in 0..<count {
                list.append(Number(number))
                model.append(number)
            }
            #expect(list.map(\.value) == model && list.isEmpty == model.isEmpty)
            list.removeAll { $0.value == removed || $0.value == removed + 1 }
            model.removeAll { $0 == removed || $0 == removed + 1 }
            #expect(list.map(\.value) == model && list.only?.value == (model.count == 1 ? model[0] : nil))
            list.append(Number(9))
            #expect(list.map(\.value) == model + [9])
            #expect(list.count == model.count + 1 && list.last?.value == 9)
        }
    }

    private final class Number: Sendable {
        let value: Int

        init(_ value: Int) { self.value = value }
    }

    @Test("a list of objects takes two words at most, empty or not")
    func size() {
        #expect(MemoryLayout<SmallList<ThreadRunLoop>?>.size <= MemoryLayout<Int>.size)
    }
}
