// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A list that mostly has one element or none: those are stored inline, without an allocation. A copy retains one
/// object.
enum SmallList<Element: Sendable>: Sendable {
    case none
    case one(Element)
    case many([Element])

    init(_ elements: [Element]) {
        self =
            switch elements.count {
            case 0: .none
            case 1: .one(elements[0])
            default: .many(elements)
            }
    }

    mutating func append(_ element: Element) {
        switch self {
        case .none: self = .one(element)
        case .one(let first): self = .many([first, element])
        case .many(var elements):
            self = .none  // so that the array is changed in place
            elements.append(element)
            self = .many(elements)
        }
    }

    mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
        self = SmallList(filter { !shouldBeRemoved($0) })
    }
}

extension SmallList: RandomAccessCollection {
    var startIndex: Int { 0 }

    var endIndex: Int {
        switch self {
        case .none: 0
        case .one: 1
        case .many(let elements): elements.count
        }
    }

    subscript(position: Int) -> Element {
        switch self {
        case .one(let element) where position == 0: element
        case .many(let elements): elements[position]
        default: fatalError("A list has no element \(position). Look at how many there are first.")
        }
    }
}

extension SmallList: ExpressibleByArrayLiteral {
    init(arrayLiteral elements: Element...) {
        self.init(elements)
    }
}
