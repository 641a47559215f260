// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The number of a source, timer or observer: never used twice in a process, and growing with the order of creation.
struct ItemID: Hashable, Comparable, Sendable {
    let rawValue: UInt64

    init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    private static let last = Atomic<UInt64>(0)

    /// A number that no item has had.
    init() {
        rawValue = Self.last.wrappingAdd(1, ordering: .relaxed).newValue
    }

    static func < (left: ItemID, right: ItemID) -> Bool {
        left.rawValue < right.rawValue
    }
}

extension ItemID {
    /// How an item calls itself: `timer "heartbeat" #12`.
    func description(of kind: String, named name: String?) -> String {
        name.map { "\(kind) \($0.debugDescription) #\(rawValue)" } ?? "\(kind) #\(rawValue)"
    }
}
