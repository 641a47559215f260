// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// How much is measured.
struct Settings {
    let isQuick: Bool

    /// How many slices each contestant gets.
    var rounds: Int { isQuick ? 5 : 15 }

    /// Nanoseconds that a slice should take.
    var sliceTime: Int64 { isQuick ? 20_000_000 : 100_000_000 }

    /// How long a program at rest is watched, in seconds.
    var rest: Int { isQuick ? 1 : 10 }

    /// The largest number of operations in a slice.
    let most = 2_000_000
}
