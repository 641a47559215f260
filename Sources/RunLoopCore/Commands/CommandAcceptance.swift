// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What became of a command that was passed to a ``CommandSource``.
public enum CommandAcceptance: Sendable, Hashable {
    /// It is in the buffer, and reaches the handler once the source is fired, unless the source is invalidated before.
    case accepted
    /// The buffer is full; the command was not accepted. Fire the source, or try again later.
    case bufferFull
    /// The source is invalid; the command was not accepted.
    case sourceInvalid
}
