// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Values by process, or by user. It caches the index of the last value that was changed: most lookups, message after
/// message, are for that one, and need no hashing.
struct PeerTable<Owner: Hashable & Sendable, Value: Sendable>: Sendable {
    private var values: [Value] = []
    private var owners: [Owner] = []
    private var places: [Owner: Int] = [:]
    private var lastPlace = 0

    var count: Int { owners.count }
    var isEmpty: Bool { owners.isEmpty }
    var allOwners: [Owner] { owners }

    /// The index of a process's value, valid until a value is removed; nil when there is none.
    func place(of owner: Owner) -> Int? {
        if lastPlace < owners.count, owners[lastPlace] == owner { return lastPlace }
        return places[owner]
    }

    /// The index of a process's value, which is added if there is none.
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

    /// Removes a value. Another one may have its index then.
    mutating func remove(at place: Int) {
        places[owners[place]] = nil
        let (owner, value) = (owners.removeLast(), values.removeLast())
        if place == owners.count { return }
        (owners[place], values[place]) = (owner, value)
        places[owner] = place
    }
}
