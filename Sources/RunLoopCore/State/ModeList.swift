// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The modes that an item is in, unordered. Mostly there is one, which is stored inline. The list has the size of a
/// pointer, as there may be very many items, and copying it mostly counts no reference.
enum ModeList: Sendable {
    case one(Int32)
    case many([Int])

    init(_ mode: Int) { self = .one(Int32(mode)) }

    /// - Returns: nil when there are none.
    init?(_ modes: [Int]) {
        switch modes.count {
        case 0: return nil
        case 1: self = .one(Int32(modes[0]))
        default: self = .many(modes)
        }
    }

    var all: [Int] {
        switch self {
        case .one(let mode): [Int(mode)]
        case .many(let modes): modes
        }
    }

    func contains(_ mode: Int) -> Bool {
        switch self {
        case .one(let only): Int(only) == mode
        case .many(let modes): modes.contains(mode)
        }
    }

    mutating func append(_ mode: Int) { self = .many(all + [mode]) }
}
