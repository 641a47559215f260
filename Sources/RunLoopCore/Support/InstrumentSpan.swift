// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// What a begin and its end have in common.
struct InstrumentSpan: Hashable, Sendable {
    var rawValue: UInt64

    /// Nobody was told of the begin, so nobody is told of the end.
    static let none = InstrumentSpan(rawValue: 0)
}
