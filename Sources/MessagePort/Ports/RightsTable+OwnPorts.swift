// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension RightsTable {
    /// The live port of this process that has an address.
    package func ownPort(at address: PortAddress) -> LocalPort? {
        // Cast without the table's lock: what else is there may go with this, its last reference, and take the lock.
        let core = destination(at: address) as? LocalPort
        return core?.isDead == false ? core : nil
    }
}
