// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The experiment of decision 0031: what it would cost if a message's parts did not name MachPort, and
// `MachMessage.components` converted them.
//
//   swiftc -O Docs/Decisions/0031-converted-components.swift -o /tmp/components && /tmp/components

final class Port: Sendable {}
final class Other: Sendable {}

enum Component: Sendable {
    case bytes([UInt8])
    case right(Other)
    case descriptor(Other)
    case receiveRight(Port)
}

/// The same without the type of the port.
enum Part: Sendable {
    case bytes([UInt8])
    case right(Other)
    case descriptor(Other)
    case receiveRight(any AnyObject & Sendable)
}

extension Component {
    init(_ part: Part) {
        switch part {
        case .bytes(let bytes): self = .bytes(bytes)
        case .right(let right): self = .right(right)
        case .descriptor(let descriptor): self = .descriptor(descriptor)
        case .receiveRight(let port):
            guard let port = port as? Port else { fatalError("There are no other receive rights.") }
            self = .receiveRight(port)
        }
    }
}

extension Part {
    init(_ component: Component) {
        switch component {
        case .bytes(let bytes): self = .bytes(bytes)
        case .right(let right): self = .right(right)
        case .descriptor(let descriptor): self = .descriptor(descriptor)
        case .receiveRight(let port): self = .receiveRight(port)
        }
    }
}

/// As it is.
struct Stored {
    var list: [Component] = []
    var components: [Component] {
        get { list }
        _modify { yield &list }
    }
}

/// As it would be.
struct Converted {
    var list: [Part] = []
    var components: [Component] {
        get { list.map(Component.init) }
        _modify {
            var converted = list.map(Component.init)
            list = []
            defer { list = converted.map(Part.init) }
            yield &converted
        }
    }
}

/// The best of five, in nanoseconds for each of `count` operations.
func time(_ count: Int, _ body: () -> Void) -> Int {
    let durations = (0..<5).map { _ in ContinuousClock().measure(body) }
    return Int((durations.min() ?? .zero) / .nanoseconds(count))
}

@inline(never) func use(_ count: Int) {}

let bytes = [UInt8](repeating: 1, count: 8)
for count in [2, 16, 256, 1024] {
    let rounds = 20_000 / count
    let appended = time(rounds * count) {
        for _ in 0..<rounds {
            var message = Stored()
            for _ in 0..<count { message.components.append(.bytes(bytes)) }
            use(message.list.count)
        }
    }
    let convertedAppended = time(rounds * count) {
        for _ in 0..<rounds {
            var message = Converted()
            for _ in 0..<count { message.components.append(.bytes(bytes)) }
            use(message.list.count)
        }
    }
    let stored = Stored(list: Array(repeating: .bytes(bytes), count: count))
    let converted = Converted(list: Array(repeating: .bytes(bytes), count: count))
    let read = time(rounds * count) {
        for _ in 0..<rounds {
            for index in 0..<count { if case .bytes(let part) = stored.components[index] { use(part.count) } }
        }
    }
    let convertedRead = time(rounds * count) {
        for _ in 0..<rounds {
            for index in 0..<count { if case .bytes(let part) = converted.components[index] { use(part.count) } }
        }
    }
    print(
        "\(count) components: append \(appended) ns, converted \(convertedAppended) ns;",
        "read one \(read) ns, converted \(convertedRead) ns")
}
