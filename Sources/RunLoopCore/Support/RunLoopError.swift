// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Why a run loop, or a thread with one, did not do what it was asked for.
///
/// Compare ``code``; print the error for a sentence that says what to do.
public struct RunLoopError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, as in the source.
        public let description: String

        /// The loop's thread has ended, or ended before it came to what was posted; that was not called. A
        /// ``ResidentThread`` takes nothing any more from the moment at which it is told to stop.
        public static let threadEnded = Code(description: "threadEnded")
        /// The limit passed before what was posted had returned. Not begun by then, it is never called; begun, it goes
        /// on.
        public static let timedOut = Code(description: "timedOut")
    }

    /// What went wrong.
    public let code: Code

    package init(_ code: Code) {
        self.code = code
    }

    /// A sentence with the cause, and what to do.
    public var description: String {
        switch code {
        case .threadEnded:
            "The run loop's thread has ended and takes no more work. Keep the thread alive for as long as others post to it."
        default:
            "The run loop did not get to it, or did not finish it, within the limit. Run the loop in the mode that was "
                + "asked for, or wait longer."
        }
    }
}
