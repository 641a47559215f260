// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Testing

@Suite("ReceiveBudget") struct ReceiveBudgetTests {
    @Test("each process has a part of all packets, in whatever order they are read")
    func shares() {
        var budget = ReceiveBudget.standard
        let owners = (1...3).map { PeerID.process(Int32($0)) }
        for index in 0..<96 { budget.spend(budget.grant(to: owners[index % 3]), by: owners[index % 3]) }
        #expect(budget.isSpent)
        var unequal = ReceiveBudget.standard
        for _ in 0..<32 {
            unequal.spend(unequal.grant(to: owners[0]), by: owners[0])
            unequal.spend(1, by: owners[1])
        }
        #expect(unequal.grant(to: owners[0]) == 0)
        #expect(unequal.grant(to: owners[1]) == 32)
        #expect(unequal.grant(to: owners[2]) == 32)
        unequal.spend(0, by: owners[2])
        #expect(!unequal.isSpent)
    }
}
