// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import RunLoopCore

extension ThreadRunLoop {
    /// Adds a source whose descriptor the kernel may refuse to watch.
    package func addOrThrow(_ source: RunLoopSource, to mode: RunLoopMode) throws(PortError) {
        try PortError.converting(tryAdd(source, to: mode))
    }
}
