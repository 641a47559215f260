// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

extension LocalPort {
    package var owningObject: (any AnyObject & Sendable)? {
        if isInherited { return nil }
        // Returned out of the lock: its release may lock again.
        return state.withLock { $0.coldState.owner }
    }

    /// Sets the owner, which retains the port: what keeps the port alive keeps the owner alive instead.
    package func setOwner(_ owner: any AnyObject & Sendable) {
        state.withLock { $0.coldState.owner = owner }
    }
}

extension RightsTable {
    /// The live port of this process that has an address.
    package func ownPort(at address: PortAddress) -> LocalPort? {
        // Cast without the table's lock: this may release the last reference to another object, which takes the lock.
        let localPort = destination(at: address) as? LocalPort
        return localPort?.isDead == false ? localPort : nil
    }
}
