// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import Synchronization
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct ProcessorAllowanceTests {
    @Test(
        "two processors are needed, by the affinity mask and by the control group's limit",
        arguments: [
            (1, nil, false), (2, nil, true), (64, nil, true), (1, 4, false), (2, 2, true), (64, 1.99, false),
            (64, 0.5, false), (64, 2.5, true),
        ] as [(Int, Double?, Bool)])
    func bothCount(processors: Int, quota: Double?, allows: Bool) {
        let allowance = ProcessorAllowance(processors: { processors }, quota: { quota })
        #expect(allowance.allowsSpinning(at: .now) == allows)
    }

    @Test("the limit is the one that the control group's files say")
    func files() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let root = scratch.path
            for (path, text) in [("proc/self/cgroup", "0::/job\n"), ("sys/fs/cgroup/job/cpu.max", "150000 100000\n")] {
                let url = URL(fileURLWithPath: root + "/" + path)
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try text.write(to: url, atomically: false, encoding: .utf8)
            }
            let limited = ProcessorAllowance(processors: { 8 }, quota: { ProcessorQuota.read(root: root) })
            #expect(!limited.allowsSpinning(at: .now))
            let free = ProcessorAllowance(processors: { 8 }, quota: { ProcessorQuota.read(root: root + "/sys") })
            #expect(free.allowsSpinning(at: .now))
        }
    }

    @Test("an answer holds for 5 s, and is looked up again then")
    func validity() {
        let (asked, limit) = (Counter("questions"), Recorder<Double>())
        let quota: @Sendable () -> Double? = {
            asked.increment()
            return limit.elements.last
        }
        let allowance = ProcessorAllowance(processors: { 2 }, quota: quota)
        let start = MonotonicInstant.now
        #expect(Tuning.allowanceValidity == .seconds(5))
        #expect(allowance.allowsSpinning(at: start))
        limit.append(1)
        #expect(allowance.allowsSpinning(at: start.advanced(by: .seconds(5) - .nanoseconds(1))))
        #expect(asked.value == 1)
        #expect(!allowance.allowsSpinning(at: start.advanced(by: .seconds(5))))
        #expect(!allowance.allowsSpinning(at: start.advanced(by: .seconds(9))))
        #expect(asked.value == 2)
        limit.append(2)
        #expect(allowance.allowsSpinning(at: start.advanced(by: .seconds(10))))
        #expect(asked.value == 3)
    }
}
