// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims

/// The main dispatch queue's descriptor, made by libdispatch when it is first asked for and libdispatch's for ever:
/// readable when blocks have come since it was read.
///
/// - Returns: the descriptor; nil when there is none left to make it with, for which libdispatch would end the process.
package func sysMainQueueDescriptor() -> CInt? {
    do throws(SystemError) {
        let room = try WakeDescriptor(.eventfd)
        _ = consume room  // its number is free again
    } catch {
        if error.isDescriptorLimit { return nil }
    }
    return shim_main_queue_descriptor()
}

/// Runs what is in the main dispatch queue now. Main thread only, and not inside of itself.
package func sysServeMainQueue() { shim_main_queue_serve() }
