// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import TestSupport
import Testing

@testable import MessagePort

@Suite("SmallTable") struct SmallTableTests {
    @Test func `a token set to nil, or removed, is found no more, first or not`() {
        var table = SmallTable<UInt64, Int>()
        for token: UInt64 in 1...3 { table[token] = Int(token) * 10 }
        #expect(table[1] == 10 && table[3] == 30 && table[4] == nil)
        table[1] = nil
        #expect(table.remove(3) == 30)
        #expect(table.remove(3) == nil)
        #expect(table.keys == [2] && table.values == [20] && !table.isEmpty)
        #expect(table.remove(2) == 20)
        #expect(table.isEmpty)
    }

    @Test(arguments: 0..<200) func `it is equal to a dictionary`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        var (table, model) = (SmallTable<UInt64, Int>(), [UInt64: Int]())
        for step in 0..<100 {
            let token = UInt64.random(in: 1...5, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1: (table[token], model[token]) = (step, step)
            case 2: (table[token], model[token]) = (nil, nil)
            case 3: #expect(table.remove(token) == model.removeValue(forKey: token), "seed \(seed), step \(step)")
            default:
                let isOdd = { (value: Int) in value % 2 == 1 }
                #expect(table.removeAll(where: isOdd).sorted() == model.values.filter(isOdd).sorted(), "seed \(seed)")
                model = model.filter { !isOdd($0.value) }
            }
            #expect(table.keys.sorted() == model.keys.sorted(), "seed \(seed), step \(step)")
            #expect((1...5).allSatisfy { table[$0] == model[$0] }, "seed \(seed), step \(step)")
            #expect(table.isEmpty == model.isEmpty, "seed \(seed), step \(step)")
        }
    }
}
