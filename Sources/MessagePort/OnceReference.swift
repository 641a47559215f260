// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// An object that is set once, by any thread, and then there for all. In place of `AtomicLazyReference`, whose `load` asks the
/// runtime for types each time (Swift 6.3), while a loop that spins does so without end.
@safe struct OnceReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private let reference = unsafe Atomic<Unmanaged<Object>?>(nil)

    // SAFETY: what is stored is retained until this goes, and nothing else is stored then.
    var object: Object? { unsafe reference.load(ordering: .acquiring)?.takeUnretainedValue() }

    /// Sets it, unless it is set.
    func set(_ object: Object) {
        let retained = unsafe Unmanaged.passRetained(object)
        let result = unsafe reference.compareExchange(
            expected: nil, desired: retained, ordering: .acquiringAndReleasing)
        if unsafe !result.exchanged { unsafe retained.release() }
    }

    deinit {
        unsafe reference.load(ordering: .acquiring)?.release()
    }
}
