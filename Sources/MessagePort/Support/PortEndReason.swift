// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// Why a port is gone, as far as its client knows. Notices of the end have it.
///
/// How a process has ended is known of a child of this process that no code has waited for yet; since Linux 6.15 also of
/// each process that was waited for.
public enum PortEndReason: Hashable, Sendable {
    /// Its owner has ended the port. The owner's process may go on.
    case invalidated
    /// The client's own object was invalidated, and the port may go on.
    case invalidatedHere
    /// The owner's process has exited with this status.
    case exited(status: Int32)
    /// A signal has ended the owner's process.
    case killed(signal: Int32)
    /// The owner's process has ended, and how is not known.
    case processEnded
    /// The owner does not talk to this process: ``PortError/Code/peerRefused``, or ``PortError/Code/malformedPacket``
    /// when the two do not understand each other.
    case refused(PortError.Code)
    /// A limit ended the connection: ``PortError/Code/tooManyConnections``, ``PortError/Code/peerNotReading``,
    /// ``PortError/Code/descriptorLimit``.
    case quota(PortError.Code)
    /// It is not known: the port was gone before this process had connected to it, or the connection ended while the
    /// process at which it was made goes on.
    case unknown
}

extension PortEndReason: CustomStringConvertible {
    /// What has happened, as the end of a sentence: "its process exited with status 3".
    public var description: String {
        switch self {
        case .invalidated: "its owner invalidated it"
        case .invalidatedHere: "the object for it was invalidated here"
        case .exited(let status): "its process exited with status \(status)"
        case .killed(let signal): "signal \(signal) killed its process"
        case .processEnded: "its process ended"
        case .refused(let code): "its owner refused this process (\(code))"
        case .quota(let code): "a limit ended the connection (\(code))"
        case .unknown: "why is not known"
        }
    }
}

extension PortEndReason {
    /// The reason that an error gives; nil when it gives none.
    init?(_ error: PortError) {
        switch error.code {
        case .peerRefused, .malformedPacket: self = .refused(error.code)
        case .tooManyConnections, .peerNotReading, .descriptorLimit, .descriptorsLost: self = .quota(error.code)
        default: return nil
        }
    }

    /// How a process has ended.
    init(_ end: ChildEnd) {
        self =
            switch end {
            case .exited(let status): .exited(status: status)
            case .signalled(let signal): .killed(signal: signal)
            case .unknown: .processEnded
            }
    }
}
