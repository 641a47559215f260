// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A strong reference that can be set later, and released. It replaces a weak reference to an object with an explicit
/// end: once an object has had a weak reference, every use of it counts references on the slow path for the rest of its
/// life.
package final class ReleasableReference<Object: Sendable>: Sendable {
    private let reference: Mutex<Object?>

    package init(_ object: consuming Object? = nil) {
        reference = Mutex(object)
    }

    /// The object; nil before it is set, and once it was released.
    package var object: Object? { reference.withLock { $0 } }

    /// Sets the object; there was none before.
    package func set(_ object: Object) {
        reference.withLock { $0 = object }
    }

    /// Releases the object.
    ///
    /// - Returns: the object: so it is released without the lock.
    @discardableResult
    func release() -> Object? {
        reference.withLock { $0.take() }
    }
}

/// A weak reference. A class: to read the object of a stored struct would first copy the struct, and with it the weak
/// reference.
package final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    package weak let object: Object?

    package init(_ object: Object?) {
        self.object = object
    }
}

/// An object that is set once, by any thread, and visible to all from then on. It replaces `AtomicLazyReference`, whose
/// `load` asks the runtime for types on each call (Swift 6.3): a loop that spins calls it all the time.
@safe struct SetOnceReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private let reference = unsafe Atomic<Unmanaged<Object>?>(nil)

    // SAFETY: the stored object is retained until this is deinitialized.
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

    /// The object, which is set now if it is not. Of several threads one sets it.
    func object(orSet make: @autoclosure () -> Object) -> Object {
        if let object { return object }
        let made = make()
        set(made)
        return object ?? made
    }

    deinit {
        unsafe reference.load(ordering: .acquiring)?.release()
    }
}

/// An object that is set, and may be replaced later. The first one is read as a `SetOnceReference`; threads that read it
/// without a lock may still use it when it is replaced, so it lives as long as this does. Later ones are read with a lock,
/// and released.
struct ReplaceableReference<Object: AnyObject & Sendable>: ~Copyable, Sendable {
    private let first = SetOnceReference<Object>()
    private let later = Mutex<Object?>(nil)
    /// Whether the first one was removed.
    private let isReplaced = Atomic<Bool>(false)

    var object: Object? {
        isReplaced.load(ordering: .sequentiallyConsistent) ? later.withLock { $0 } : first.object
    }

    /// As that of `SetOnceReference`. Inlined: a loop that polls calls it all the time.
    @inline(__always)
    func withObject<Success, Failure: Error>(
        _ body: (Object) throws(Failure) -> Success
    ) throws(Failure) -> Success? {
        if !isReplaced.load(ordering: .sequentiallyConsistent) { return try first.withObject(body) }
        guard let object = laterObject else { return nil }
        return try body(object)
    }

    @inline(never)
    private var laterObject: Object? { later.withLock { $0 } }

    /// Sets it; it is not set. One thread at a time sets and removes.
    func set(_ object: Object) {
        if !isReplaced.load(ordering: .sequentiallyConsistent) { return first.set(object) }
        later.withLock { $0 = object }
    }

    /// Unsets it.
    ///
    /// - Returns: what was set.
    func remove() -> Object? {
        if isReplaced.load(ordering: .sequentiallyConsistent) { return later.withLock { $0.take() } }
        guard let object = first.object else { return nil }
        isReplaced.store(true, ordering: .sequentiallyConsistent)
        return object
    }
}
