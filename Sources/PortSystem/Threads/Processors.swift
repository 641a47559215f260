// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How many processors may run this program at the same time, and on which a thread runs. That decides whether a thread
// may spin: on its own processor, a spinning thread keeps the thread that it waits for from running, unless it yields.

import CPortShims
import PortCLibrary

/// How many processors the calling thread may run on (`sched_getaffinity(2)`); at least one.
package func sysAllowedProcessorCount() -> Int { max(1, Int(shim_allowed_processor_count())) }

/// The processor on which the calling thread runs, numbered from one; zero where finding out takes a system call: in
/// gVisor, and with a C library that does not register restartable sequences. It may be another when this returns.
package func sysProcessor() -> UInt32 { UInt32(max(-1, shim_processor()) + 1) }

/// The share of the processors that a control group leaves to this process, according to the files under
/// `/sys/fs/cgroup`.
package enum ProcessorQuota {
    /// The smallest limit of this process's groups and those above them, in processors; nil when there is none.
    ///
    /// Version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`) are read where they are usually mounted. A file that
    /// cannot be read counts as no limit.
    ///
    /// - Parameter root: the directory that contains `proc` and `sys`.
    /// - Returns: the limit, greater than zero.
    package static func read(root: String = "") -> Double? {
        guard let groups = sysReadText(root + "/proc/self/cgroup") else { return nil }
        return directories(of: groups)
            .flatMap { group in ancestors(of: group.path).map { group.mount + $0 } }
            .compactMap { limit(of: root + "/sys/fs/cgroup" + $0) }.min()
    }

    /// The groups that this process is in: where their hierarchy is mounted, and their path in it.
    static func directories(of groups: String) -> [(mount: String, path: String)] {
        groups.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return nil }
            let path = fields[2] == "/" ? "" : String(fields[2])
            if fields[1].isEmpty { return ("", path) }
            return fields[1].split(separator: ",").contains("cpu") ? ("/cpu", path) : nil
        }
    }

    /// A path and all its ancestors, down to the empty one.
    static func ancestors(of path: String) -> [String] {
        var paths = [path]
        while let last = paths.last, let slash = last.lastIndex(of: "/") { paths.append(String(last[..<slash])) }
        return paths
    }

    private static func limit(of directory: String) -> Double? {
        if let both = sysReadText(directory + "/cpu.max") { return limit(quotaAndPeriod: both) }
        guard let quota = sysReadText(directory + "/cpu.cfs_quota_us"),
            let period = sysReadText(directory + "/cpu.cfs_period_us")
        else { return nil }
        return limit(quotaAndPeriod: quota + " " + period)
    }

    /// The limit for a quota and a period in microseconds; nil for `max`, -1 and anything that is no number.
    static func limit(quotaAndPeriod text: String) -> Double? {
        let numbers = text.split { $0 == " " || $0 == "\n" }.map { Double($0) }
        guard numbers.count == 2, let quota = numbers[0], let period = numbers[1] else { return nil }
        return quota > 0 && period > 0 ? quota / period : nil
    }
}

/// Hints to the processor that the thread spins.
@inline(__always)
package func sysPause() { shim_pause() }

/// Yields the processor to other threads that want it (`sched_yield(2)`), for as long as they want it.
package func sysYield() {
    // It cannot fail on Linux, and a spinning thread continues anyway.
    _ = try? retrying(.sched_yield) { sched_yield() }
}
