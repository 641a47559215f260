// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Whether the runtime keeps the object's reference count in a side table, as for each object to which there ever was a
/// weak reference. Counting there takes several times as long.
public func hasSideTable(_ object: AnyObject) -> Bool {
    // The second word of an object has the count, unless its highest bit is set.
    let words = Unmanaged.passUnretained(object).toOpaque().assumingMemoryBound(to: UInt64.self)
    return words[1] >> 63 == 1
}
