// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension PortError {
    /// The status that `CFMessagePortSendRequest` would have returned, for code that is ported from there; success is
    /// 0.
    ///
    /// - `kCFMessagePortSendTimeout` (-1): ``Code/sendTimedOut``.
    /// - `kCFMessagePortReceiveTimeout` (-2): ``Code/replyTimedOut``.
    /// - `kCFMessagePortIsInvalid` (-3): ``Code/invalidPort`` and ``Code/deadName``: nothing was sent, the port is
    ///   gone.
    /// - `kCFMessagePortTransportError` (-4): every error for which CFMessagePort has no number.
    /// - `kCFMessagePortBecameInvalidError` (-5): ``Code/peerDied``: the port went away before it replied.
    public var cfStatus: Int32 {
        switch code {
        case .sendTimedOut: -1
        case .replyTimedOut: -2
        case .invalidPort, .deadName: -3
        case .peerDied: -5
        default: -4
        }
    }
}
