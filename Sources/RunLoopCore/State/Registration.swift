// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// What a loop knows of a port-based source in a mode lies in one place, its seat there. A message costs the loop a
// handful of looks at it, so none of them searches a table: whoever has to do with a source keeps the number of a seat
// of it. That may be out of date. So each look compares the source first, and searches when it is another's.

/// The number of a seat in its loop. It is used again when the seat is free.
typealias RegistrationIndex = Int

/// What a loop knows of a port-based source in one mode: 32 bytes, as there may be very many sources.
struct Registration: Sendable {
    /// Nil when the seat is free.
    var source: RunLoopSource?
    /// The round of the ready list in which it was performed last.
    var lastRound: UInt64 = 0
    /// The index of the mode.
    let mode: Int32
    /// The next seat of the source, in a circle.
    var next: Int32
    /// Where the mode's ready list has it; `nowhere` when it is not there.
    var place = Self.nowhere
    /// What is known of its descriptor, among the loop's watches; `nowhere` when it watches none.
    var watch = Self.nowhere

    static let nowhere: Int32 = -1

    var isListed: Bool { place != Self.nowhere }
}

/// What a loop knows of the descriptor of a port-based source in one mode.
struct RegistrationWatch: Sendable {
    /// The key of the registration in the mode's set, which is the only one.
    var key: UInt64
    var descriptor: CInt
    /// The turn in which the kernel last reported the descriptor, until the report is taken.
    var report: Int?
}
