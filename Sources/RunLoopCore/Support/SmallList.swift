// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A list of objects that mostly has one or none: those are stored inline, without an allocation. It has the size of a
/// pointer, also where it is optional, and a copy retains one object.
struct SmallList<Element: AnyObject & Sendable>: Sendable {
    // SAFETY: every object in it is an Element.
    private var objects = ObjectList.none

    init() {}

    init(_ element: Element) { objects = .one(element) }

    init(_ elements: [Element]) {
        objects =
            switch elements.count {
            case 0: .none
            case 1: .one(elements[0])
            default: .many(elements)
            }
    }

    /// Whether it has no element.
    var isEmpty: Bool { if case .none = objects { true } else { false } }

    /// The element, when there is one and no other.
    var only: Element? {
        if case .one(let object) = objects { unsafe unsafeDowncast(object, to: Element.self) } else { nil }
    }

    /// Calls `body` for each. Allocates nothing.
    func forEach(_ body: (Element) -> Void) {
        switch objects {
        case .none: break
        case .one(let object): unsafe body(unsafeDowncast(object, to: Element.self))
        case .many(let list): for object in list { unsafe body(unsafeDowncast(object, to: Element.self)) }
        }
    }

    mutating func append(_ element: Element) {
        switch objects {
        case .none: objects = .one(element)
        case .one(let first): objects = .many([first, element])
        case .many(var list):
            objects = .none  // so that the array is changed in place
            list.append(element)
            objects = .many(list)
        }
    }

    mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
        self = SmallList(filter { !shouldBeRemoved($0) })
    }
}

/// What a small list has. It is not generic, so the compiler knows that a pointer has spare bits for the case.
private enum ObjectList: Sendable {
    case none
    case one(any AnyObject & Sendable)
    case many([any AnyObject & Sendable])
}

extension SmallList: RandomAccessCollection {
    var startIndex: Int { 0 }

    var endIndex: Int {
        switch objects {
        case .none: 0
        case .one: 1
        case .many(let list): list.count
        }
    }

    subscript(position: Int) -> Element {
        switch objects {
        case .one(let object) where position == 0: unsafe unsafeDowncast(object, to: Element.self)
        case .many(let list): unsafe unsafeDowncast(list[position], to: Element.self)
        default: fatalError("A list has no element \(position). Check how many there are first.")
        }
    }
}

extension SmallList: ExpressibleByArrayLiteral {
    init(arrayLiteral elements: Element...) {
        self.init(elements)
    }
}
