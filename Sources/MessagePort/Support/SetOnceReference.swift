// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// An object that is set once, by any thread, and then there for all. In place of `AtomicLazyReference`, whose `load`
/// asks the runtime for types each time (Swift 6.3), while a loop that spins does so without end.
@safe struct SetOnceReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private let reference = unsafe Atomic<Unmanaged<Object>?>(nil)

    // SAFETY: what is stored is retained until this goes, and nothing else is stored then.
    var object: Object? { unsafe reference.load(ordering: .acquiring)?.takeUnretainedValue() }

    /// Calls the body with the object, if it is there. It stays as long as this does, so no reference is counted: of an
    /// object that others refer to weakly that takes long.
    func withObject<Success, Failure: Error>(
        _ body: (Object) throws(Failure) -> Success
    ) throws(Failure) -> Success? {
        guard let object = unsafe reference.load(ordering: .acquiring) else { return nil }
        // SAFETY: as above.
        let result = unsafe object._withUnsafeGuaranteedRef { object in
            Result { () throws(Failure) in try body(object) }
        }
        return try result.get()
    }

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
