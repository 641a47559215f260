// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// The components of a message. Most messages have one, which is stored inline, without an allocation.
struct MessageParts: Sendable {
    private enum Storage: Sendable {
        case none
        case one(MachMessage.Component)
        case many([MachMessage.Component])
    }

    private var storage: Storage

    init(_ component: MachMessage.Component) {
        storage = .one(component)
    }

    init(_ components: [MachMessage.Component]) {
        storage =
            switch components.count {
            case 0: .none
            case 1: .one(components[0])
            default: .many(components)
            }
    }

    /// None yet, but two or more soon: their memory is allocated at once, with no more room than they need.
    init(roomFor count: Int) {
        var components: [MachMessage.Component] = []
        components.reserveCapacity(count)
        storage = .many(components)
    }

    mutating func append(_ component: MachMessage.Component) {
        switch storage {
        case .none: storage = .one(component)
        case .one(let first): storage = .many([first, component])
        case .many(var components):
            storage = .none  // so that the list is changed in place
            components.append(component)
            storage = .many(components)
        }
    }

    var rightCount: Int {
        switch storage {
        case .one(.right): 1
        case .none, .one: 0
        case .many(let components):
            components.reduce(0) { count, part in if case .right = part { count + 1 } else { count } }
        }
    }

    /// How many bytes there are in them, without those of descriptors and rights.
    var byteCount: Int {
        switch storage {
        case .one(.bytes(let bytes)): bytes.count
        case .none, .one: 0
        case .many(let components):
            components.reduce(0) { count, component in
                if case .bytes(let bytes) = component { count + bytes.count } else { count }
            }
        }
    }

    /// Recycles the memory: the bytes of the only component, for another message.
    mutating func recycleMemory() {
        if let bytes = removeOnlyBytes() { BufferPool.leave(consume bytes) }
    }

    /// Moves the bytes of the only one out; nil, with no change, when there is another, or none.
    mutating func removeOnlyBytes() -> [UInt8]? {
        guard case .one(.bytes) = storage else { return nil }
        var left = Storage.none
        swap(&left, &storage)
        if case .one(.bytes(let bytes)) = consume left { return bytes }
        return nil
    }

    /// Calls the body with each of them, and whether it is the last. Unlike a loop, this counts no references.
    func visit<Failure: Error>(
        _ body: (MachMessage.Component, _ isLast: Bool) throws(Failure) -> Void
    ) throws(Failure) {
        switch storage {
        case .none: break
        case .one(let component): try body(component, true)
        case .many(let components):
            for (index, component) in components.enumerated() { try body(component, index == components.count - 1) }
        }
    }

    var list: [MachMessage.Component] {
        get {
            switch storage {
            case .none: []
            case .one(let component): [component]
            case .many(let components): components
            }
        }
        _modify {
            var components = list
            storage = .none  // so that the list is changed in place
            defer { self = MessageParts(components) }
            yield &components
        }
    }
}

extension MessageParts: RandomAccessCollection {
    var startIndex: Int { 0 }

    var endIndex: Int {
        switch storage {
        case .none: 0
        case .one: 1
        case .many(let components): components.count
        }
    }

    subscript(position: Int) -> MachMessage.Component {
        switch storage {
        case .one(let component) where position == 0: component
        case .many(let components): components[position]
        default: fatalError("A message has no component \(position). Look at how many there are first.")
        }
    }
}
