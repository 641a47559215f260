// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Whether the runtime keeps the object's count of references in a table of its own, as for each to which there ever was a weak
/// reference. To count there takes several times as long.
public func hasSideTable(_ object: AnyObject) -> Bool {
    // The second word of an object has the count, and says by its highest bit that it has not.
    let words = Unmanaged.passUnretained(object).toOpaque().assumingMemoryBound(to: UInt64.self)
    return words[1] >> 63 == 1
}
