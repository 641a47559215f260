// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import CPortShims

/// How many times this process and its ancestors have forked: a different number than before means that this is a
/// child. No system call. A child made by clone(2) without the C library's fork is not noticed.
@inlinable package func sysForkCount() -> UInt32 { shim_fork_count() }

/// Notes in which process its object was made: a forked child has a copy of each object, but not the threads that may
/// hold its locks, and must not use it.
///
/// It is checked where code enters an object that may be such a copy, before the first lock there or the first use of a
/// descriptor. Most entries are calls of the program: in a child they throw, or do nothing. The others are reached
/// without such a call, so they check by themselves, however deep they are: deinitializers (of a descriptor, of a
/// right, of the charge for a message, which is refunded to its sender's account), notices, what the copy of a loop
/// calls (routines of sources, connections whose memory it polls), and what follows a handler, which may have forked. A
/// packet that the child read would be lost for the parent.
package struct ForkGuard: Sendable {
    @usableFromInline let forkCount = sysForkCount()

    package init() {}

    /// Whether this is a forked child's copy. Inlined: a message has about ten such checks on its way.
    @inlinable package var isInherited: Bool { sysForkCount() != forkCount }
}
