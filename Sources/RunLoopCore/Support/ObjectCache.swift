// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

// @unchecked: what is put in is Sendable, which the type of the object does not say.
/// Where an object is left that is needed again soon: whoever needs one takes it, in place of making one anew.
@safe package struct ObjectCache: ~Copyable, @unchecked Sendable {
    private let object = unsafe Atomic<Unmanaged<AnyObject>?>(nil)

    package init() {}

    // SAFETY: each exchange takes out what another has put in, retained; nobody else has that retain.
    /// Takes the object out, if there is one.
    package func take() -> AnyObject? {
        unsafe object.exchange(nil, ordering: .acquiringAndReleasing)?.takeRetainedValue()
    }

    /// Leaves an object, in place of the one that is there.
    package func put(_ leftover: any AnyObject & Sendable) {
        let retained = unsafe Unmanaged<AnyObject>.passRetained(leftover)
        unsafe object.exchange(retained, ordering: .acquiringAndReleasing)?.release()
    }

    deinit {
        unsafe object.load(ordering: .acquiring)?.release()
    }
}
