// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// A weak reference. A class: to read the object of a stored struct would first copy the struct, and with it the weak
/// reference.
final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    weak let object: Object?

    init(object: Object?) {
        self.object = object
    }
}
