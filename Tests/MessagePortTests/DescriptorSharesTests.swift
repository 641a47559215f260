// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("DescriptorShares", .leakCheck) struct DescriptorSharesTests {
    @Test(
        "F-A2: one process within its limits at a port leaves that port's process three eighths of its descriptors",
        arguments: [48, 64, 100, 256, 1_024, 4_096, 1 << 20, Int.max])
    func shares(_ limit: Int) {
        let shares = DescriptorShares(limit: limit)
        let most = shares.connections + shares.queued - 1 + shares.inMessage  // one message exceeds the limit
        #expect(most <= limit - limit / 8 * 3)
        #expect(min(shares.connections, shares.queued, shares.inMessage) > 0)
        #expect(shares.peerBound < limit && limit - shares.peerBound >= limit / 8)
        if limit >= 2_048 { #expect((shares.connections, shares.queued, shares.inMessage) == (256, 512, 500)) }
        guard let bound = CInt(exactly: shares.peerBound) else { return }
        #expect(shares.admits(bound - 1) && !shares.admits(bound))
    }

    @Test("F-A2: the limits of a port are those of the process when it gets its sockets")
    func portLimits() throws {
        withDescriptorLimit(1_024) {
            #expect(PeerLimits.standard.connections == 128 && PeerLimits().queuedDescriptors == 256)
        }
        withDescriptorLimit(64) {
            #expect(PeerLimits.standard.connections == 8 && PeerLimits().queuedDescriptors == 16)
            #expect(PendingCloseCount().isAtLimit == false)
        }
    }

    @Test("a budget gives all or nothing, up to its limit, and again what was given back")
    func budget() {
        let budget = DescriptorBudget { 5 }
        #expect(budget.reserve(2) && budget.reserve(2))
        #expect(!budget.reserve(2))
        #expect(budget.reserve(1))
        budget.release(2)
        #expect(!budget.reserve(3))
        #expect(budget.reserve(2))
    }

    @Test("threads that draw on a budget and give back never have more than its limit together")
    func together() throws {
        let (budget, held) = (DescriptorBudget { 7 }, SharedCount())
        let threads = (0..<4).map { _ in
            runOnThread {
                for _ in 0..<20_000 where budget.reserve(2) {
                    #expect(held.count.add(2, ordering: .sequentiallyConsistent).newValue <= 7)
                    held.count.subtract(2, ordering: .sequentiallyConsistent)
                    budget.release(2)
                }
            }
        }
        for thread in threads { try thread.join() }
        #expect(budget.reserve(7))
        #expect(!budget.reserve(1))
    }

    @Test("a budget follows the limit of the process's descriptors")
    func changedLimit() {
        withDescriptorLimit(64) {
            #expect(sysDescriptorLimit() == 64 && DescriptorShares().wakeChannels == 16)
            let budget = DescriptorBudget { DescriptorShares().wakeChannels }
            #expect(budget.reserve(16) && !budget.reserve(1))
            withDescriptorLimit(32) { #expect(!budget.reserve(1)) }
            budget.release(8)
            withDescriptorLimit(32) { #expect(!budget.reserve(1)) }
            #expect(budget.reserve(8))
        }
    }
}

private final class SharedCount: Sendable {
    let count = Atomic<Int>(0)
}
