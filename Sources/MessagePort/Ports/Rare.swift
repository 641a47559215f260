// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value that can start blank.
protocol Blankable: Sendable {
    init()
    /// One for everybody whose value is blank: only read.
    static var blank: RareBox<Self> { get }
}

// @unchecked: the value is changed only while one reference to the box is left.
/// Where a value lies that is not blank any more. Behind a pointer: of a class's property the whole value is copied to look
/// at a part of it.
@safe final class RareBox<Value: Blankable>: @unchecked Sendable {
    fileprivate let place: UnsafeMutablePointer<Value>  // immutable

    init(_ value: Value = Value()) {
        unsafe place = .allocate(capacity: 1)
        unsafe place.initialize(to: value)
    }

    deinit {
        unsafe place.deinitialize(count: 1)
        unsafe place.deallocate()
    }
}

/// A value that mostly stays blank: until it is changed first it takes a pointer's room. Its projection is nil while it is
/// blank, and makes it blank again.
///
/// Each accessor yields in one place only: such a one is made part of its caller, another takes memory for each access.
@propertyWrapper struct Rare<Value: Blankable>: Sendable {
    private var box: RareBox<Value>?

    var wrappedValue: Value {
        @inline(__always) _read {
            let box = box ?? Value.blank
            yield unsafe box.place.pointee
        }
        @inline(__always) _modify {
            let box = own()
            yield unsafe &box.place.pointee
        }
    }

    /// Whether it has never been changed; told without a look at the value.
    var isBlank: Bool { box == nil }

    var projectedValue: Value? {
        get { box.map { unsafe $0.place.pointee } }
        set { box = newValue.map { RareBox($0) } }
    }

    /// The box, which nobody else has.
    private mutating func own() -> RareBox<Value> {
        if isKnownUniquelyReferenced(&box), let box { return box }
        let own = RareBox(projectedValue ?? Value())
        box = own
        return own
    }
}
