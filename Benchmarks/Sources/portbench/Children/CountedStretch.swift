// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a child does while its system calls are counted.
enum CountedStretch {
    static func run(_ arguments: [String]) throws {}
}
