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
    @exclusivity(unchecked) private var modeAhead: Int?  // loop thread

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

    /// The loop polls for the next run already, in this mode.
    func beginPollingAhead(for mode: Int) { unsafe modeAhead = mode }

    /// - Returns: whether the loop polls for the run that begins, in this mode.
    func takePollingAhead(for mode: Int) -> Bool {
        guard let known = unsafe modeAhead else { return false }
        unsafe modeAhead = nil
        return known == mode
    }

    /// - Returns: whether the loop polls for a run that has not begun.
    func takePollingAhead() -> Bool { unsafe modeAhead.take() != nil }

    /// Whether other memory may be worth polling since the list was made: the kernel has reported something, or an
    /// entry has gone.
    var busyPollsAreStale: Bool {
        get { unsafe mayHaveMore }
        set { unsafe mayHaveMore = newValue }
    }
}
