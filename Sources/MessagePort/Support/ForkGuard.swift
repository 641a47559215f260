// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Notes in which process its object was made: a forked child has a copy of each object, but not the threads that may
/// hold its locks, and must not use it.
package struct ForkGuard: Sendable {
    private let forkCount = sysForkCount()

    package init() {}

    /// Whether this is a forked child's copy.
    package var isInherited: Bool { sysForkCount() != forkCount }

    /// - Throws: `forkedProcess` in a forked child.
    package func check() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
    }
}
