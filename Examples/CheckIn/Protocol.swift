// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The messages between the main thread and its worker.
enum MessageID {
    /// Worker to main: here I am. `kCheckinMessage` of listings 3-13 and 3-18.
    static let checkIn: Int32 = 100
    /// Main to worker: count these bytes.
    static let count: Int32 = 101
    /// Worker to main: lines, words and bytes.
    static let counted: Int32 = 102
    /// Main to worker: leave.
    static let leave: Int32 = 103
}

/// How long anything may take before the program gives up.
let patience = Duration.seconds(30)

/// Why the program ended early; its text is the one line on standard error.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
