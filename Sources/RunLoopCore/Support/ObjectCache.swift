// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

// @unchecked: an object that is put in is Sendable, which its stored type does not say.
/// Stores one object for reuse: code that needs such an object removes it from here instead of making another.
@safe package struct ObjectCache: ~Copyable, @unchecked Sendable {
    private let object = unsafe Atomic<Unmanaged<AnyObject>?>(nil)

    package init() {}

    // SAFETY: each exchange removes what another has put in, retained; no other code has that retain.
    /// Removes and returns the object, if there is one.
    package func take() -> AnyObject? {
        unsafe object.exchange(nil, ordering: .acquiringAndReleasing)?.takeRetainedValue()
    }

    /// Stores an object, in place of the previous one.
    package func put(_ new: any AnyObject & Sendable) {
        let retained = unsafe Unmanaged<AnyObject>.passRetained(new)
        unsafe object.exchange(retained, ordering: .acquiringAndReleasing)?.release()
    }

    deinit {
        unsafe object.load(ordering: .acquiring)?.release()
    }
}
