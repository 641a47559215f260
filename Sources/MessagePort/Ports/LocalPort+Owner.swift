// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// An object that is not kept alive.
struct WeakOwner: Sendable {
    weak let object: (any AnyObject & Sendable)?
}

extension LocalPort {
    /// The object that has the port, as long as it is there.
    package var owner: (any AnyObject & Sendable)? {
        if isInherited { return nil }
        // Leaves the lock with the result: its end may take the lock.
        return state.withLock { $0.extras.owner?.object }
    }

    /// Says which object has the port: whatever keeps the port alive keeps that object instead. It holds the port.
    package func setOwner(_ owner: any AnyObject & Sendable) {
        state.withLock { $0.extras.owner = WeakOwner(object: owner) }
    }
}
