// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// An object that is set once, by any thread, and visible to all from then on. It replaces `AtomicLazyReference`, whose
/// `load` asks the runtime for types on each call (Swift 6.3): a loop that spins calls it without end.
@safe struct SetOnceReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private let reference = unsafe Atomic<Unmanaged<Object>?>(nil)

    // SAFETY: what is stored is retained until this goes, and nothing replaces it.
    var object: Object? { unsafe reference.load(ordering: .acquiring)?.takeUnretainedValue() }

    /// Calls the body with the object, if it is there. The object lives as long as this does, so no reference is
    /// counted: that is slow for an object with weak references.
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
