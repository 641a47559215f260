// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// A strong reference that can be released. It replaces a weak reference to an object with an explicit end: once an
/// object has had a weak reference, every use of it counts references on the slow path for the rest of its life.
final class Kept<Object: Sendable>: Sendable {
    private let kept: Mutex<Object?>

    init(_ object: Object) {
        kept = Mutex(object)
    }

    /// The object; nil once it was released.
    var object: Object? { kept.withLock { $0 } }

    /// Releases the object.
    func letGo() {
        let old = kept.withLock { $0.take() }
        withExtendedLifetime(old) {}  // released without the lock
    }
}
