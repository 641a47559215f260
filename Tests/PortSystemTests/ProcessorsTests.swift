// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import TestSupport
import Testing

@testable import PortSystem

@Suite("Processors", .leakCheck) struct ProcessorsTests {
    @Test("a thread may use at least one processor, and no more than the system has")
    func count() {
        #expect((1...sysconf(Int32(_SC_NPROCESSORS_CONF))).contains(sysAllowedProcessorCount()))
    }

    @Test("a quota counts relative to its period; max, -1 and nonsense are no limit")
    func limit() {
        #expect(ProcessorQuota.limit(quotaAndPeriod: "150000 100000\n") == 1.5)
        for text in ["max 100000\n", "-1\n 100000\n", "", "1", "a b", "100000 0"] {
            #expect(ProcessorQuota.limit(quotaAndPeriod: text) == nil)
        }
    }

    @Test("the smallest limit of a group and those above it counts, in version 2 of control groups")
    func versionTwo() throws {
        try quota(
            groups: "0::/outer/inner\n",
            ["cpu.max": "max 100000\n", "outer/cpu.max": "150000 100000\n", "outer/inner/cpu.max": "300000 100000\n"],
            is: 1.5)
    }

    @Test("version 1 has its two files in a hierarchy of its own")
    func versionOne() throws {
        try quota(
            groups: "4:memory:/other\n3:cpu,cpuacct:/job\n2:cpuset:/\n",
            [
                "cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n",
                "cpu/job/cpu.cfs_quota_us": "50000\n", "cpu/job/cpu.cfs_period_us": "100000\n",
                "memory/other/cpu.max": "1 100000",
            ], is: 0.5)
    }

    @Test("without groups, files or limits there is none")
    func none() throws {
        try quota(groups: "0::/\n", ["cpu.max": "max 100000\n"], is: nil)
        try quota(groups: "nonsense\n0::/gone\n", [:], is: nil)
        try quota(groups: "", [:], is: nil)
    }

    private func quota(groups: String, _ files: [String: String], is expected: Double?) throws {
        try withScratchDirectory { scratch in
            let root = scratch.path
            func write(_ text: String, to path: String) throws {
                let url = URL(fileURLWithPath: root + "/" + path)
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try text.write(to: url, atomically: false, encoding: .utf8)
            }
            try write(groups, to: "proc/self/cgroup")
            for (path, text) in files { try write(text, to: "sys/fs/cgroup/" + path) }
            #expect(ProcessorQuota.read(root: root) == expected)
        }
    }
}
