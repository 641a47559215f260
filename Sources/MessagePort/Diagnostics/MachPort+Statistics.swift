// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension MachPort {
    /// What the port has counted, all of one moment. It costs one lock, and no system call. Messages that are still in
    /// the port's sockets do not count.
    public var statistics: PortStatistics { core.statistics }
}
