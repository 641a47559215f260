// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// Whether waits for names and watches of them may scan the directory at an interval, and how often they have.
final class IntervalLooks: Sendable {
    private let nanoseconds = Atomic<Int64>(0)  // zero: they may not
    let count = Atomic<Int>(0)
    private static let shortest = Duration.milliseconds(1)

    var interval: Duration? {
        get {
            let nanoseconds = nanoseconds.load(ordering: .relaxed)
            return nanoseconds == 0 ? nil : .nanoseconds(nanoseconds)
        }
        set {
            nanoseconds.store(newValue.map { max($0, Self.shortest).nanoseconds } ?? 0, ordering: .relaxed)
        }
    }
}

extension PortNameServer {
    /// How often a wait for a name, a watch of names, or an iteration of ``events`` scans the directory where the
    /// kernel gives no directory watch: the user has none left, or a filter refuses inotify. Nil, the initial value:
    /// they throw ``/MessagePort/PortError/Code/watchLimit`` then.
    ///
    /// It applies to each wait, watch and iteration that begins from now on. A name may be found that much later than
    /// it came, and one that came and went between two scans is not found at all. Each scan reads the whole directory;
    /// ``intervalLookCount`` counts them. At least a millisecond.
    public var lookInterval: Duration? {
        get { looks.interval }
        set { looks.interval = newValue }
    }

    /// How many times waits and watches have scanned the directory because ``lookInterval`` had passed.
    public var intervalLookCount: Int { looks.count.load(ordering: .relaxed) }
}
