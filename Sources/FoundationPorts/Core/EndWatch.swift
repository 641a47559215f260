// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import MessagePort
import RunLoopCore

/// Notices of the ends of ports of other processes, which arrive on a thread of this library and are passed on to the main
/// queue. The thread starts with the first.
enum EndWatch {
    /// Calls a handler once on the main queue when the port is gone.
    ///
    /// - Returns: the request; nil when there are no means for it: then only sends and polls notice the end.
    static func watch(_ right: SendRight, _ handler: @escaping @Sendable () -> Void) -> NoticeRequest? {
        guard let thread = ProcessObjects.current.threadForEnds() else { return nil }
        return try? right.notifyWhenDead(on: thread.loop) { _ in DispatchQueue.main.async(execute: handler) }
    }
}
