// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// The mappings of memory files that this process has, as lines of proc_pid_maps(5).
package func mappedMemoryFiles() throws -> [String] {
    let maps = try sysOpen("/proc/self/maps", .reading)
    let lines = String(decoding: try sysReadAll(maps.raw), as: UTF8.self).split(separator: "\n")
    return lines.filter { $0.contains("/memfd:") }.map { String($0) }
}
