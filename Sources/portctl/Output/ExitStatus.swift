// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The exit statuses of the program.
enum ExitStatus: Int32 {
    case done = 0
    case failure = 1
    case absent = 3
    case timedOut = 4
    case refused = 5
    /// `EX_USAGE` of sysexits.h.
    case usage = 64

    /// The exit status for an error.
    init(_ error: any Error) {
        guard let code = (error as? PortError)?.code else {
            self = error is UsageError ? .usage : .failure
            return
        }
        self =
            switch code {
            case .nameUnknown, .deadName, .peerDied: .absent
            case .sendTimedOut, .replyTimedOut, .nameWaitTimedOut: .timedOut
            case .remoteError, .replyDropped, .messageDropped: .refused
            default: .failure
            }
    }
}
