// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
package import Testing

/// Makes the spare descriptor again, with the lowest number: a refused connection may still have had that.
package func renewSpareDescriptor(sourceLocation: SourceLocation = #_sourceLocation) {
    let deadline = Watchdog.deadline
    while !DescriptorCloser.isIdle, .now < deadline { yieldThread() }
    _ = SpareDescriptor.shared.lend { false }
    #expect(!SpareDescriptor.shared.isMissing, sourceLocation: sourceLocation)
}
