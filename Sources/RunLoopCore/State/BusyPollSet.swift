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

// @unchecked: only the loop's thread waits.
/// The memory that a loop polls also while it handles events, for its innermost run.
@safe final class BusyPollSet: @unchecked Sendable {
    // SAFETY: only the loop's thread uses the two, and no access contains another. A dynamic check of that would cost
    // each message more.
    @exclusivity(unchecked) private var list: SmallList<BusyPollEntry> = .none  // loop thread
    @exclusivity(unchecked) private var mayHaveMore = false  // loop thread

    /// The entries.
    var entries: SmallList<BusyPollEntry> {
        get { unsafe list }
        set { unsafe list = newValue }
    }

    /// Whether other memory may be worth polling since the list was made: the kernel has reported something, or an
    /// entry has gone.
    var isStale: Bool {
        get { unsafe mayHaveMore }
        set { unsafe mayHaveMore = newValue }
    }

    /// Whether there is no entry.
    var isEmpty: Bool { if case .none = unsafe list { true } else { false } }
}
