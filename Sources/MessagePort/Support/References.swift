// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A strong reference that can be set later, and released. It replaces a weak reference to an object with an explicit
/// end: once an object has had a weak reference, every use of it counts references on the slow path for the rest of its
/// life.
package final class ReleasableReference<Object: Sendable>: Sendable {
    private let reference: Mutex<Object?>

    package init(_ object: Object? = nil) {
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

    // SAFETY: the stored object is retained until this is deinitialized, and is never replaced.
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

/// A value that can start blank. It is not copyable, so reading a part of it never copies the whole.
protocol ColdValue: ~Copyable, Sendable {
    init()
    /// The box that all blank values share: read only.
    static var blank: ColdBox<Self> { get }
}

// @unchecked: the value is guarded by what guards the property whose box it is.
/// The storage of a value that is no longer blank. It is behind a pointer, so that no access needs an exclusivity
/// check.
@safe final class ColdBox<Value: ColdValue & ~Copyable>: @unchecked Sendable {
    fileprivate let pointer: UnsafeMutablePointer<Value>  // immutable

    init() {
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: Value())
    }

    deinit {
        unsafe pointer.deinitialize(count: 1)
        unsafe pointer.deallocate()
    }
}

/// A value that usually stays blank: until its first change it takes the room of a pointer. A copy of the property
/// shares the value, so one of the two has to reset its own to blank.
///
/// Each accessor has one `yield`: the compiler inlines such an accessor. With more than one it allocates memory for
/// each access.
struct ColdStorage<Value: ColdValue & ~Copyable>: Sendable {
    private var box: ColdBox<Value>?

    var value: Value {
        @inline(__always) _read {
            let box = box ?? Value.blank
            yield unsafe box.pointer.pointee
        }
        @inline(__always) _modify {
            if box == nil { box = ColdBox() }
            let box = box ?? Value.blank
            yield unsafe &box.pointer.pointee
        }
    }

    /// Whether it has no value of its own; does not read the value.
    var isBlank: Bool { box == nil }

    /// Moves the value out, and leaves a blank one.
    mutating func take() -> ColdStorage {
        defer { box = nil }
        return self
    }
}
