// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Values by key. Mostly there is one or none: that is stored inline, and found without a hash.
struct SmallTable<Key: Hashable, Value> {
    private var only: (key: Key, value: Value)?
    /// What came while there was one.
    private var others: [Key: Value] = [:]

    var isEmpty: Bool { only == nil && others.isEmpty }

    var keys: [Key] { (only.map { [$0.key] } ?? []) + others.keys }

    var values: [Value] { (only.map { [$0.value] } ?? []) + others.values }

    subscript(key: Key) -> Value? {
        get {
            if let only, only.key == key { return only.value }
            return others.isEmpty ? nil : others[key]
        }
        set {
            if only?.key == key {
                only = newValue.map { (key, $0) }
            } else if only == nil, others.isEmpty, let newValue {
                only = (key, newValue)
            } else {
                others[key] = newValue
            }
        }
    }

    /// Removes the value with the key.
    ///
    /// - Returns: the value; nil when there is none.
    mutating func remove(_ key: Key) -> Value? {
        guard let found = only, found.key == key else { return others.removeValue(forKey: key) }
        only = nil
        return found.value
    }

    /// Removes the values for which `shouldBeRemoved` is true.
    ///
    /// - Returns: them.
    mutating func removeAll(where shouldBeRemoved: (Value) -> Bool) -> [Value] {
        let removed = values.filter(shouldBeRemoved)
        if let found = only, shouldBeRemoved(found.value) { only = nil }
        others = others.filter { !shouldBeRemoved($0.value) }
        return removed
    }
}

extension SmallTable: Sendable where Key: Sendable, Value: Sendable {}
