// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// Values by the tokens of requests. Mostly there is one or none: that is stored inline, and found without a hash.
struct TokenTable<Value> {
    private var only: (token: UInt64, value: Value)?
    /// What came while there was one.
    private var others: [UInt64: Value] = [:]

    var isEmpty: Bool { only == nil && others.isEmpty }

    var tokens: [UInt64] { (only.map { [$0.token] } ?? []) + others.keys }

    var values: [Value] { (only.map { [$0.value] } ?? []) + others.values }

    subscript(token: UInt64) -> Value? {
        get {
            if let only, only.token == token { return only.value }
            return others.isEmpty ? nil : others[token]
        }
        set {
            if only?.token == token {
                only = newValue.map { (token, $0) }
            } else if only == nil, others.isEmpty, let newValue {
                only = (token, newValue)
            } else {
                others[token] = newValue
            }
        }
    }

    /// Removes the value with the token.
    ///
    /// - Returns: the value; nil when there is none.
    mutating func remove(_ token: UInt64) -> Value? {
        guard let found = only, found.token == token else { return others.removeValue(forKey: token) }
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

extension TokenTable: Sendable where Value: Sendable {}
