// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The sources of a mode that the kernel has reported last, by their registrations.
struct RecentReports: Sendable {
    static let limit = 4

    private(set) var seats: [RegistrationIndex] = []

    mutating func note(_ seat: RegistrationIndex) {
        if seats.last == seat { return }
        remove(seat)
        if seats.count == Self.limit { seats.removeFirst() }
        seats.append(seat)
    }

    /// Forgets a registration that is about to be freed.
    mutating func remove(_ seat: RegistrationIndex) {
        seats.removeAll { $0 == seat }
    }
}
