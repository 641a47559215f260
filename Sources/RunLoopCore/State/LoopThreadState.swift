// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Memory that a loop polls, the number of the polling period, and the source for which the loop polls: its id, because
/// the source itself may own its port. A class, because the memory's type may have weak references, which make each
/// copy of a list slow.
final class BusyPollEntry: Sendable {
    let pollable: any BusyPollable  // immutable
    let poll: UInt64  // immutable
    let source: ItemID  // immutable

    init(_ pollable: any BusyPollable, _ poll: UInt64, for source: ItemID) {
        (self.pollable, self.poll, self.source) = (pollable, poll, source)
    }

    var isBusyPolled: Bool { pollable.isBusyPolled(poll) }
}

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
