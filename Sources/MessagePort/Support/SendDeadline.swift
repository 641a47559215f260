// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// Until when a sender waits for room. Most senders within a process find room at once, and then never read the clock.
package enum SendDeadline: Sendable {
    /// This long from when the deadline is first read; a sender that waits reads it once.
    case after(Duration)
    case instant(MonotonicInstant)

    /// It sends when there is room, and does not wait.
    static let never = SendDeadline.instant(.distantPast)

    var mayWait: Bool {
        switch self {
        case .after(let limit): limit > .zero
        case .instant(let instant): instant > .distantPast
        }
    }

    /// The deadline, which stays the same from now on.
    mutating func fix() -> MonotonicInstant {
        let instant = instant
        self = .instant(instant)
        return instant
    }

    var instant: MonotonicInstant {
        switch self {
        case .after(let limit): .after(limit)
        case .instant(let instant): instant
        }
    }
}
