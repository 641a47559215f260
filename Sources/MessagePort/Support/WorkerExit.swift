// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// How a worker ended.
public enum WorkerExit: Hashable, Sendable, CustomStringConvertible {
    /// The process ended with this status, usually 0 for success.
    case exited(status: Int32)
    /// This signal ended the process.
    case signalled(Int32)
    /// The process ended, and how is not known: the program ignores `SIGCHLD`, or other code has waited for it.
    case unknown
    /// The thread ended: it was asked to, or its port was invalidated.
    case threadEnded
    /// The thread ended because its body threw an error, which this text describes.
    case threadFailed(String)

    /// What happened, as the end of a sentence: "ended with status 3".
    public var description: String {
        switch self {
        case .exited(let status): "ended with status \(status)"
        case .signalled(let signal): "died of signal \(signal)"
        case .unknown: "ended, how is not known"
        case .threadEnded: "ended"
        case .threadFailed(let text): "ended with an error (\(text))"
        }
    }

    init(_ end: ChildEnd) {
        self =
            switch end {
            case .exited(let status): .exited(status: status)
            case .signalled(let signal): .signalled(signal)
            case .unknown: .unknown
            }
    }
}
