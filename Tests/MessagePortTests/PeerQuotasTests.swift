// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Synchronization
import TestSupport
import Testing

@Suite("PeerQuotas") struct PeerQuotasTests {
    @Test(
        "resuming a process's connections takes as much of the stack for the thousandth time as for the first",
        .disabled(if: hasAddressSanitizer, "the address sanitizer puts variables outside of the stack"))
    func resuming() {
        let quotas = PeerQuotas()
        let depths = Mutex<[UInt]>([])
        let (owner, cost) = (PeerID.process(7), ResourceUsage(bytes: 100))
        quotas.withLock { usage in
            usage.limits.queuedBytes = cost.bytes
            #expect(usage.connect(1, of: owner) == true)
        }
        quotas.whenBelowLimits { resumed in
            var mark = 0
            let depth = withUnsafePointer(to: &mark) { UInt(bitPattern: $0) }
            depths.withLock { $0.append(depth) }
            quotas.withLock { #expect($0.removeResumable(of: resumed) == [1]) }
        }
        for _ in 0..<1000 {
            quotas.withLock { usage in
                usage.charge(cost, by: owner)
                #expect(usage.pause(1) == true)
            }
            quotas.refund(cost, by: owner)
        }
        quotas.whenBelowLimits(nil)
        let all = depths.withLock { $0 }
        #expect(all.count == 1000 && Set(all).count == 1)
    }
}
