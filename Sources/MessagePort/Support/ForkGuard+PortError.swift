// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

extension ForkGuard {
    /// - Throws: `forkedProcess` in a forked child.
    package func check() throws(PortError) {
        if isInherited { throw PortError(.forkedProcess) }
    }
}
