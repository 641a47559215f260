// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value that can start blank.
protocol Blankable: Sendable {
    init()
}

/// A value that mostly stays blank: until it is changed first it takes a pointer's room. Its projection is nil while it is
/// blank, and makes it blank again.
@propertyWrapper struct Rare<Value: Blankable>: Sendable {
    // @unchecked: the value is changed only while one reference to the box is left.
    private final class Box: @unchecked Sendable {
        var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box?

    var wrappedValue: Value {
        _read {
            if let box { yield box.value } else { yield Value() }
        }
        _modify {
            let isOwn = isKnownUniquelyReferenced(&box)
            let own = if isOwn, let box { box } else { Box(box?.value ?? Value()) }
            box = own
            yield &own.value
        }
    }

    var projectedValue: Value? {
        get { box?.value }
        set { box = newValue.map { Box($0) } }
    }
}
