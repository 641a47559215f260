// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// All that a loop knows of a port-based source in a mode is in one registration. A message accesses it several times,
// and none of these accesses should search a table: so sources and callers cache the index of a registration. The
// cached index may be out of date, so each access first compares the source, and searches when the registration is
// another source's.

/// The index of a registration in its loop's table. It is reused when the registration is freed.
typealias RegistrationIndex = Int

/// What a loop knows of a port-based source in one mode: 32 bytes, as there may be very many sources.
struct Registration: Sendable {
    /// Nil when the registration is free.
    var source: RunLoopSource?
    /// The round of the ready list in which it was last performed.
    var lastRound: UInt64 = 0
    /// The index of the mode.
    let mode: Int32
    /// The next registration of the source, in a circular list.
    var next: Int32
    /// Its index in the mode's ready list; `nowhere` when it is not listed.
    var place = Self.nowhere
    /// The index of its descriptor's entry in the loop's watches; `nowhere` when it watches none.
    var watch = Self.nowhere

    static let nowhere: Int32 = -1

    var isListed: Bool { place != Self.nowhere }
}

/// What a loop knows of the descriptor of a port-based source in one mode.
struct RegistrationWatch: Sendable {
    /// The key of the registration in the mode's set, which is the only one.
    var key: UInt64
    var descriptor: CInt
    /// The pass in which the kernel last reported the descriptor, until the report is consumed.
    var report: Int?
}
