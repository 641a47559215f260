// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A value with several owners: it is destroyed with the last reference.
package final class Shared<Value: ~Copyable & Sendable>: Sendable {
    package let value: Value  // immutable

    package init(_ value: consuming Value) {
        self.value = value
    }
}
