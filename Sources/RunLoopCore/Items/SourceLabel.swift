// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What sources of one kind have in common: their name and their order. They share the object, because there may be
/// very many of them.
package final class SourceLabel: Sendable {
    package let name: String?
    let order: Int

    package init(_ name: String?, order: Int = 0) {
        self.name = name
        self.order = order
    }

    /// The label of sources that were given neither.
    static let plain = SourceLabel(nil)
}
