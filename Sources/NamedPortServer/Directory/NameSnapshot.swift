// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

/// The held names as they were last read, by file; each further reading is compared with that.
struct NameSnapshot: Sendable {
    private(set) var entries: [String: NameEntry] = [:]

    /// The processes that hold names.
    var owners: Set<Int32> { Set(entries.values.map(\.registration.owner)) }

    /// The files of a process's names.
    func files(of owner: Int32) -> [String] {
        entries.filter { $0.value.registration.owner == owner }.map(\.key)
    }

    /// Records what one file says now.
    ///
    /// - Returns: the changes: the old holder has gone, and after that the new one has appeared.
    mutating func note(_ file: String, _ now: NameEntry?) -> [NameEvent] {
        let before = entries[file]
        if let before, let now, before.isSame(as: now) { return [] }
        entries[file] = now
        return [before.map { .went($0.registration) }, now.map { .appeared($0.registration) }].compactMap { $0 }
    }

    /// Records what all files say now.
    ///
    /// - Returns: the changes: all that have gone, then all that have appeared, each by name.
    mutating func noteAll(_ now: [String: NameEntry]) -> [NameEvent] {
        let changes = Set(entries.keys).union(now.keys).flatMap { note($0, now[$0]) }
        return changes.sorted { left, right in
            left.isAppearance == right.isAppearance
                ? left.registration.name < right.registration.name : right.isAppearance
        }
    }
}

extension NameEvent {
    fileprivate var isAppearance: Bool {
        if case .appeared = self { true } else { false }
    }
}
