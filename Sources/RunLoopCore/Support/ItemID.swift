// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The number of a source, a timer, an observer, a request or another item: never used twice in a process, and growing
/// with the order of creation.
package struct ItemID: Hashable, Comparable, Sendable {
    let rawValue: UInt64

    init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    private static let last = Atomic<UInt64>(0)

    /// A number that no other item has.
    init() {
        rawValue = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
    }

    package static func < (left: ItemID, right: ItemID) -> Bool {
        left.rawValue < right.rawValue
    }

    /// Spreads the numbers over a table with one multiplication, where the standard hash takes 150 instructions. The
    /// numbers are not chosen from outside, so they need no protection against deliberate collisions. The seed, which
    /// differs between tables, prevents clustering in a table that is filled in the order of another.
    package func _rawHashValue(seed: Int) -> Int {
        let product = (rawValue ^ UInt64(truncatingIfNeeded: seed)) &* 0x9E37_79B9_7F4A_7C15
        return Int(truncatingIfNeeded: product ^ product >> 32)
    }
}

extension ItemID {
    /// An item's description: `timer "heartbeat" #12`.
    func description(of kind: String, named name: String?) -> String {
        name.map { "\(kind) \($0.debugDescription) #\(rawValue)" } ?? "\(kind) #\(rawValue)"
    }
}
