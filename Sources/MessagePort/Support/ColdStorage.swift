// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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

    convenience init() { self.init(Value()) }

    fileprivate init(_ value: consuming Value) {
        unsafe pointer = .allocate(capacity: 1)
        unsafe pointer.initialize(to: value)
    }

    deinit {
        unsafe pointer.deinitialize(count: 1)
        unsafe pointer.deallocate()
    }
}

/// A value that usually stays blank: until its first change it takes the room of a pointer. A copy of the property
/// shares the value, so one of the two has to reset its own to blank.
///
/// Its accessors return an address. One that yields the value is a coroutine, which allocates memory for each access
/// wherever the compiler does not inline it.
struct ColdStorage<Value: ColdValue & ~Copyable>: Sendable {
    private var box: ColdBox<Value>?

    /// Blank.
    init() {}

    init(_ value: consuming Value) { box = ColdBox(value) }

    // SAFETY: while one accesses the value, the property, or the constant that the storage was moved to, has its box,
    // so that need not be retained. The value of a temporary is not accessed.
    var value: Value {
        unsafeAddress { unsafe UnsafePointer((box ?? Value.blank).pointer) }
        unsafeMutableAddress {
            if box == nil { box = ColdBox() }
            return unsafe (box ?? Value.blank).pointer
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
