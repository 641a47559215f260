// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Why a run loop, or a thread with one, did not do what was requested.
///
/// Compare ``code``; print the error for a sentence that says what to do.
public struct RunLoopError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's name, as in the source.
        public let description: String

        /// The loop's thread has ended, or ended before it got to the posted call; that was not made. A
        /// ``ResidentThread`` accepts nothing more from the moment at which ``ResidentThread/stop()`` is called.
        public static let threadEnded = Code(description: "threadEnded")
        /// The limit passed before the posted call had returned. If it had not begun by then, it is never made; if it
        /// had, it continues.
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
