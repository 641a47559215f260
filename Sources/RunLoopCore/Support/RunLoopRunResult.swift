// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Why a run of a loop returned.
///
/// When several reasons hold at once, the first in this order is returned: stopped, handled source, timed out,
/// finished.
public enum RunLoopRunResult: Sendable, Hashable {
    /// The mode has no source, no timer and no block left, or never had one.
    case finished
    /// ``ThreadRunLoop/stop()`` was called.
    case stopped
    /// The time limit has passed.
    case timedOut
    /// A source was handled, and the run was to return after one.
    case handledSource
}
