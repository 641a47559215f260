// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The number that a begin and its end have in common.
struct InstrumentSpan: Hashable, Sendable {
    var rawValue: UInt64

    /// No instrument was notified of the begin, so none is notified of the end.
    static let none = InstrumentSpan(rawValue: 0)
}
