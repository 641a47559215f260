// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The constants of this program that decide speed or how long to wait, and nothing else. A constant, or its section,
/// names the decision of Docs/Decisions that it is from, or says that it was chosen and not measured.
enum Tuning {
    // MARK: Input and output. Chosen, not measured.

    /// How long a successor waits for its port: Chosen, not measured.
    static let takeOverLimit = Duration.seconds(60)

    /// How many bytes one call reads or writes at most: what a pipe holds.
    static let pieceSize = 1 << 16

    /// The progress of a shorter message is not shown: it is sent before a user could read the line. In bytes.
    static let shortestProgress = 1 << 20

    /// How often the line with the progress is written. A message that is sent sooner shows none.
    static let progressInterval = Duration.milliseconds(100)

    // MARK: Serving. Chosen, not measured.

    /// How long to wait before what the system lacked the resources for is tried again.
    static let timeUntilRetry = Duration.milliseconds(100)

    /// How long the process stays for clients that read too slowly to have room for their replies.
    static let flushLimit = Duration.seconds(10)

    /// How many times `activate` starts a command within `startSpan` at most.
    static let startCount = 5

    /// See `startCount`. In whole seconds.
    static let startSpan = Duration.seconds(10)

    // MARK: Measuring. Chosen, not measured.

    /// How long `doctor` and `bench` wait for a worker's check-in, and for each answer.
    static let answerLimit = Duration.seconds(10)

    /// How long `bench` measures each of its checks.
    static let checkSpan = Duration.milliseconds(1200)

    /// The same with `--quick`.
    static let quickCheckSpan = Duration.milliseconds(100)
}
