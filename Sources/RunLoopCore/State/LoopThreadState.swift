// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// @unchecked: only the loop's thread performs, waits, and begins runs inside a perform.
/// What only the loop's thread uses, without a lock.
@safe final class LoopThreadState: @unchecked Sendable {
    // SAFETY: only the loop's thread uses these, and no access contains another. A dynamic check of that would cost each
    // message more than the lists themselves.
    @exclusivity(unchecked) private var performingIDs: [ItemID] = []  // loop thread
    @exclusivity(unchecked) private var entries = SmallList<BusyPollEntry>()  // loop thread
    @exclusivity(unchecked) private var mayHaveMore = false  // loop thread

    /// The version-1 sources whose perform routines are in progress, innermost last.
    var performing: [ItemID] { unsafe performingIDs }

    func beginPerform(_ source: RunLoopSource) {
        unsafe performingIDs.append(source.id)
    }

    func endPerform() {
        _ = unsafe performingIDs.popLast()
    }

    /// The memory that the loop polls also while it handles events, for its innermost run.
    var busyPolls: SmallList<BusyPollEntry> {
        get { unsafe entries }
        set { unsafe entries = newValue }
    }

    /// Whether there is such memory.
    var isBusyPolling: Bool { unsafe !entries.isEmpty }

    /// Whether other memory may be worth polling since the list was made: the kernel has reported something, or an
    /// entry has gone.
    var busyPollsAreStale: Bool {
        get { unsafe mayHaveMore }
        set { unsafe mayHaveMore = newValue }
    }
}
