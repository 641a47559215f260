// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims

/// The main dispatch queue's descriptor, which libdispatch makes when it is first asked for, and owns: it is readable
/// when blocks have arrived since it was last read.
///
/// - Returns: the descriptor; nil where the system refuses eventfds: libdispatch uses nothing else, and ends the
///   process when it gets none.
/// - Throws: EMFILE, ENFILE, ENOMEM: there is none at the moment.
package func sysMainQueueDescriptor() throws(SystemError) -> CInt? {
    let probe = try EventDescriptor()
    if probe.kind != .eventfd { return nil }
    _ = consume probe  // its number is free again
    return shim_main_queue_descriptor()
}

/// Runs the blocks that are in the main dispatch queue now. Main thread only, and not inside itself.
package func sysServeMainQueue() { shim_main_queue_serve() }
