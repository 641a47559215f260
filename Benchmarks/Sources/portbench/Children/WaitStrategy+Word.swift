// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// The words that say how a child's loop waits, those of `PORT_WAIT`.
extension WaitStrategy {
    init(word: String?) {
        switch word {
        case "blocking": self = .blocking
        case "spinning": self = Placement.twoProcessors.busy
        default: self = .adaptive
        }
    }

    var word: String {
        switch self {
        case .blocking: "blocking"
        case .spinning: "spinning"
        case .adaptive: "adaptive"
        }
    }
}
