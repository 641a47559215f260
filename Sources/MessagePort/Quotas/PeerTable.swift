// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Values by process, or by user. It knows where the last one lies that was changed: mostly it is asked for that again, message
/// after message, and that takes no hashing.
struct PeerTable<Owner: Hashable & Sendable, Value: Sendable>: Sendable {
    private var values: [Value] = []
    private var owners: [Owner] = []
    private var places: [Owner: Int] = [:]
    private var lastPlace = 0

    var count: Int { owners.count }
    var isEmpty: Bool { owners.isEmpty }
    var allOwners: [Owner] { owners }

    /// Where the value of a process lies, until one is taken out; nil when there is none.
    func place(of owner: Owner) -> Int? {
        if lastPlace < owners.count, owners[lastPlace] == owner { return lastPlace }
        return places[owner]
    }

    /// Where the value of a process lies, which is put there if there is none.
    mutating func place(of owner: Owner, default value: @autoclosure () -> Value) -> Int {
        if let known = place(of: owner) {
            lastPlace = known
            return known
        }
        lastPlace = owners.count
        places[owner] = lastPlace
        owners.append(owner)
        values.append(value())
        return lastPlace
    }

    subscript(place: Int) -> Value {
        _read { yield values[place] }
        _modify { yield &values[place] }
    }

    /// Takes a value out. Another one may lie in its place then.
    mutating func remove(at place: Int) {
        places[owners[place]] = nil
        let (owner, value) = (owners.removeLast(), values.removeLast())
        if place == owners.count { return }
        (owners[place], values[place]) = (owner, value)
        places[owner] = place
    }
}
