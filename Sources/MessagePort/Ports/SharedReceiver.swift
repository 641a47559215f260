// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import Synchronization

/// The one thread that receives from sockets for all tasks of the process that wait for messages or replies.
///
/// It starts when it is first needed, and stays. Tasks that wait for what comes in memory need none.
package enum SharedReceiver {
    private static let thread = Mutex<ResidentThread?>(nil)

    /// Its loop.
    package static func loop() throws(PortError) -> ThreadRunLoop {
        if let thread = thread.withLock({ $0 }) { return thread.loop }
        let made: ResidentThread
        do throws(SystemError) {
            made = try ResidentThread(name: "port-receiver")
        } catch {
            throw PortError(error)
        }
        return thread.withLock { thread in
            if thread == nil { thread = made }
            return thread?.loop ?? made.loop
        }
    }
}
