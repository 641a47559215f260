// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// @unchecked: only the loop's thread performs, and begins runs inside of that.
/// The version-1 sources whose perform routines are under way, innermost last.
@safe final class PerformingSources: @unchecked Sendable {
    // SAFETY: the loop's thread alone is at the list, and no access contains another. To have that checked would cost
    // each message more than the list.
    @exclusivity(unchecked) private var list: [ItemID] = []  // loop thread

    var ids: [ItemID] { unsafe list }

    func begin(_ source: RunLoopSource) {
        unsafe list.append(source.id)
    }

    func endLast() {
        _ = unsafe list.popLast()
    }
}
