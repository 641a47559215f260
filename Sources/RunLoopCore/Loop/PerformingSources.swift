// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// @unchecked: only the loop's thread performs, and begins runs inside a perform.
/// The version-1 sources whose perform routines are in progress, innermost last.
@safe final class PerformingSources: @unchecked Sendable {
    // SAFETY: only the loop's thread uses the list, and no access contains another. A dynamic check of that would cost
    // each message more than the list itself.
    @exclusivity(unchecked) private var list: [ItemID] = []  // loop thread

    var ids: [ItemID] { unsafe list }

    func begin(_ source: RunLoopSource) {
        unsafe list.append(source.id)
    }

    func endLast() {
        _ = unsafe list.popLast()
    }
}
