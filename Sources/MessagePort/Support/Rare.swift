// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value that can start blank. It cannot be copied: to look at a part of it is never a copy of the whole.
protocol Blankable: ~Copyable, Sendable {
    init()
    /// One for everybody whose value is blank: only read.
    static var blank: RareBox<Self> { get }
}

// @unchecked: the value is guarded by what guards the property whose box it is.
/// Where a value lies that is not blank any more. Behind a pointer, so that each look needs no check for exclusive
/// access.
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

/// A value that mostly stays blank: until it is changed first it takes a pointer's room. Whoever copies the property
/// has the same value afterwards, so one of the two has to make its own blank.
///
/// Each accessor yields in one place only: the compiler inlines such an accessor, and allocates memory for each access of another.
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

    /// Whether it has never been changed; told without a look at the value.
    var isBlank: Bool { box == nil }

    /// Takes the value away, and leaves a blank one.
    mutating func take() -> Rare {
        defer { box = nil }
        return self
    }
}
