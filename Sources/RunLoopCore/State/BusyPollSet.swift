// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A place at which a loop looks, the number of the look, and the source for which it does: not the source itself, which may keep
/// its port. An object, because a place may have weak references, with which each copy of a list would take long.
final class BusyPollEntry: Sendable {
    let place: any BusyPollable  // immutable
    let look: UInt64  // immutable
    let source: ItemID  // immutable

    init(_ place: any BusyPollable, _ look: UInt64, for source: ItemID) {
        (self.place, self.look, self.source) = (place, look, source)
    }

    var isKept: Bool { place.isKept(look) }
}

// @unchecked: only the loop's thread waits.
/// The places at which a loop looks also while it handles what has come: those of the run that it is in.
@safe final class BusyPollSet: @unchecked Sendable {
    // SAFETY: the loop's thread alone is at both, and no access contains another. To have that checked would cost each
    // message more.
    @exclusivity(unchecked) private var list: SmallList<BusyPollEntry> = .none  // loop thread
    @exclusivity(unchecked) private var mayHaveMore = false  // loop thread

    /// The places.
    var places: SmallList<BusyPollEntry> {
        get { unsafe list }
        set { unsafe list = newValue }
    }

    /// Whether others may be worth a look since the list was made: the kernel has told of something, or one has gone.
    var isStale: Bool {
        get { unsafe mayHaveMore }
        set { unsafe mayHaveMore = newValue }
    }

    /// Whether there is none.
    var isEmpty: Bool { if case .none = unsafe list { true } else { false } }
}
