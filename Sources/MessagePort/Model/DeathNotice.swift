// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import RunLoopCore

/// A handler to call when a port has ended, or a requester no longer waits, and the run loop on which to call it.
package final class DeathNotice: Sendable {
    package let loop: ThreadRunLoop  // immutable
    package let mode: RunLoopMode  // immutable
    package let handler: @Sendable (PortEndReason) -> Void  // immutable

    package init(loop: ThreadRunLoop, mode: RunLoopMode, handler: @escaping @Sendable (PortEndReason) -> Void) {
        self.loop = loop
        self.mode = mode
        self.handler = handler
    }

    package func notify(_ reason: PortEndReason = .unknown) {
        loop.perform(in: [mode], name: "port end") { [handler] in handler(reason) }
    }
}
