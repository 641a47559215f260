// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension PortError {
    /// What became of the message whose sending, or whose reply, failed.
    public enum Delivery: UInt8, Hashable, Sendable {
        /// It is not known: the receiver was killed, or did not answer in time.
        case unknown = 0
        /// It reached the port's queue and was dropped there: it was not read and never will be.
        case unread = 1
        /// The receiver dequeued it.
        case read = 2
        /// It did not leave the sender, which may send it again.
        case notSent = 3
    }

    /// What became of the message: which leg of a request failed.
    ///
    /// Asking again does no harm after ``Delivery/notSent`` and ``Delivery/unread``. A receiver that is killed reports
    /// nothing: ``Delivery/unknown``.
    public var delivery: Delivery {
        if let knownDelivery { return knownDelivery }
        return switch code {
        case .peerDied, .replyTimedOut, .replyDropped, .descriptorsLost, .malformedPacket, .cancelled, .peerNotReading:
            .unknown
        case .remoteError, .malformedContent: .read
        case .messageDropped: .unread
        default: .notSent
        }
    }

    /// For ``Code/remoteError``: the receiver's own number.
    public var remoteCode: Int32? {
        if case .remote(let code, _) = subject { code } else { nil }
    }

    /// For ``Code/remoteError``: what the receiver says, at most ``remoteTextLimit`` bytes of UTF-8.
    public var remoteText: String? {
        if case .remote(_, let text) = subject { text } else { nil }
    }

    /// The most bytes of UTF-8 that the text of an error reply has; a longer one is cut between characters.
    public static let remoteTextLimit = 4_096

    /// An error of the receiver's own, as its requester gets it.
    package static func remote(code: Int32, text: String) -> PortError {
        var (shown, size) = ("", 0)
        if text.utf8.count <= remoteTextLimit {
            shown = text
        } else {
            for character in text {
                size += character.utf8.count
                if size > remoteTextLimit { break }
                shown.append(character)
            }
        }
        return PortError(.remoteError, subject: .remote(code: code, text: shown), delivery: .read)
    }

    /// The same error with the port that it is about, unless the port is already set.
    package func at(_ place: @autoclosure () -> String) -> PortError {
        if self.place != nil { return self }
        var error = self
        error.place = place()
        return error
    }

    /// The same error with the name of the port that it is about, unless the error already contains the name.
    package func at(name: String) -> PortError {
        switch subject {
        case .name?: return self
        case .size? where code == .nameTooLong: return self
        default: break
        }
        if code == .nameEmpty { return self }
        var error = self
        error.place = "the port \(name.debugDescription)"
        return error
    }

    /// The same error with what became of the message, unless that was known.
    package func delivered(_ delivery: Delivery) -> PortError {
        var error = self
        if error.knownDelivery == nil { error.knownDelivery = delivery }
        return error
    }
}
