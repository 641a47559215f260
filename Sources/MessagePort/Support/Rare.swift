// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value that can start blank. It is not copyable, so reading a part of it never copies the whole.
protocol Blankable: ~Copyable, Sendable {
    init()
    /// The box that all blank values share: read only.
    static var blank: RareBox<Self> { get }
}

// @unchecked: the value is guarded by what guards the property whose box it is.
/// The storage of a value that is no longer blank. It is behind a pointer, so that no access needs an exclusivity
/// check.
@safe final class RareBox<Value: Blankable & ~Copyable>: @unchecked Sendable {
    fileprivate let place: UnsafeMutablePointer<Value>  // immutable

    init() {
        unsafe place = .allocate(capacity: 1)
        unsafe place.initialize(to: Value())
    }

    deinit {
        unsafe place.deinitialize(count: 1)
        unsafe place.deallocate()
    }
}

/// A value that usually stays blank: until its first change it takes the room of a pointer. A copy of the property
/// shares the value, so one of the two has to reset its own to blank.
///
/// Each accessor has one `yield`: the compiler inlines such an accessor. With more than one it allocates memory for
/// each access.
struct Rare<Value: Blankable & ~Copyable>: Sendable {
    private var box: RareBox<Value>?

    var value: Value {
        @inline(__always) _read {
            let box = box ?? Value.blank
            yield unsafe box.place.pointee
        }
        @inline(__always) _modify {
            if box == nil { box = RareBox() }
            let box = box ?? Value.blank
            yield unsafe &box.place.pointee
        }
    }

    /// Whether it has no value of its own; does not read the value.
    var isBlank: Bool { box == nil }

    /// Moves the value out, and leaves a blank one.
    mutating func take() -> Rare {
        defer { box = nil }
        return self
    }
}
