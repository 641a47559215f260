// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// How many bytes of other messages may be sent between the pieces of a message, so that a small message does not wait
/// for the end of a large one. Both sides count: the sender before it sends one, the receiver when one has come.
///
/// It grows by the bytes of each piece, and is never more than is missing of the message: all that is between the
/// pieces of a message takes no more memory than the message, and fits where its next piece is read to.
struct PieceAllowance: Equatable, Sendable {
    private(set) var bytes: Int

    init(bytes: Int = 0) { self.bytes = bytes }

    /// What a message takes of it: at least as much as it is charged to its process.
    static func cost(_ payload: Int, components: Int) -> Int { payload + 512 + 328 * components }

    /// A piece was sent, or has come.
    mutating func didPass(_ piece: Int, missing: Int) { bytes = min(bytes + piece, missing) }

    /// - Returns: whether there may be a message with this cost now; then it is counted.
    mutating func spend(_ cost: Int) -> Bool {
        if cost > bytes { return false }
        bytes -= cost
        return true
    }
}
