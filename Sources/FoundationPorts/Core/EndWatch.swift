// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Dispatch
import MessagePort
import PortSystem
import RunLoopCore

/// Notices of the ends of ports of other processes, which arrive on a thread of this library and are passed on to the main
/// queue. The thread starts with the first.
enum EndWatch {
    /// Calls a handler once on the main queue when the port is gone.
    ///
    /// - Returns: the request; nil when there are no means for it: then only sends and polls notice the end, and the reason
    ///   is on standard error.
    static func watch(_ right: SendRight, _ handler: @escaping @Sendable () -> Void) -> NoticeRequest? {
        watch(right, on: { () throws(SystemError) in try ProcessObjects.current.threadForEnds() }, handler)
    }

    /// As above, with a thread that a test may refuse.
    static func watch(
        _ right: SendRight, on thread: () throws(SystemError) -> ResidentThread,
        _ handler: @escaping @Sendable () -> Void
    ) -> NoticeRequest? {
        do {
            let loop = try thread().loop
            return try right.notifyWhenDead(on: loop) { _ in DispatchQueue.main.async(execute: handler) }
        } catch {
            logRefusal("the end of a port is noticed by sends and checks only: \(error)", by: "FoundationPorts")
            return nil
        }
    }
}
