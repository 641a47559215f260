// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims

/// How many times this process and its ancestors have forked: a different number than before means that this is a
/// child. No system call. A child made by clone(2) without the C library's fork is not noticed.
package func sysForkCount() -> UInt32 { shim_fork_count() }

/// Notes in which process its object was made: a forked child has a copy of each object, but not the threads that may
/// hold its locks, and must not use it.
package struct ForkGuard: Sendable {
    private let forkCount = sysForkCount()

    package init() {}

    /// Whether this is a forked child's copy.
    package var isInherited: Bool { sysForkCount() != forkCount }
}
