// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims

/// The main dispatch queue's descriptor, made by libdispatch when it is first asked for and libdispatch's for ever:
/// readable when blocks have come since it was read.
///
/// - Returns: the descriptor; nil where the system refuses eventfds: libdispatch takes nothing else, and ends the process
///   when it gets none.
/// - Throws: EMFILE, ENFILE, ENOMEM: at the moment there is none.
package func sysMainQueueDescriptor() throws(SystemError) -> CInt? {
    let probe = try EventDescriptor()
    if probe.kind != .eventfd { return nil }
    _ = consume probe  // its number is free again
    return shim_main_queue_descriptor()
}

/// Runs what is in the main dispatch queue now. Main thread only, and not inside of itself.
package func sysServeMainQueue() { shim_main_queue_serve() }
