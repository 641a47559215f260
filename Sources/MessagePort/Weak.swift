// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// An object that is not kept alive.
struct Weak<Object: AnyObject & Sendable>: Sendable {
    weak let object: Object?
}
