// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// An object that is not kept alive. A class: whoever looks at the object of a place in memory would copy a struct
/// first, and with it the weak reference.
final class WeakReference<Object: AnyObject & Sendable>: Sendable {
    weak let object: Object?

    init(object: Object?) {
        self.object = object
    }
}
