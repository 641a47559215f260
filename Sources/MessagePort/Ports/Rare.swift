// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value that can start blank.
protocol Blankable: Sendable {
    init()
    /// One for everybody whose value is blank: only read.
    static var blank: RareBox<Self> { get }
}

// @unchecked: the value is changed only while one reference to the box is left.
/// Where a value lies that is not blank any more.
final class RareBox<Value: Blankable>: @unchecked Sendable {
    fileprivate(set) var value: Value

    init(_ value: Value = Value()) {
        self.value = value
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
            let place = box ?? Value.blank
            yield place.value
        }
        @inline(__always) _modify {
            let place = own()
            yield &place.value
        }
    }

    /// Whether it has never been changed; told without a look at the value.
    var isBlank: Bool { box == nil }

    var projectedValue: Value? {
        get { box?.value }
        set { box = newValue.map { RareBox($0) } }
    }

    /// The box, which nobody else has.
    private mutating func own() -> RareBox<Value> {
        if isKnownUniquelyReferenced(&box), let box { return box }
        let own = RareBox(box?.value ?? Value())
        box = own
        return own
    }
}
