// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// An object that is kept alive until it is let go. In place of a weak reference to what has an end of its own: an object
/// that others refer to weakly has its references counted the slow way for ever, by all who use it.
final class Kept<Object: Sendable>: Sendable {
    private let kept: Mutex<Object?>

    init(_ object: Object) {
        kept = Mutex(object)
    }

    /// The object; nil once it was let go.
    var object: Object? { kept.withLock { $0 } }

    /// Keeps it no more.
    func letGo() {
        let old = kept.withLock { $0.take() }
        withExtendedLifetime(old) {}  // goes without the lock
    }
}
