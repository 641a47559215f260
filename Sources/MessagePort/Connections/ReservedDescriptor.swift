// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

/// A descriptor reserved for the moment when no other is left: lent, it lets a connection be refused cleanly. While it
/// is lent another thread may take its number; then it is made again as soon as there is a descriptor for it.
package final class ReservedDescriptor: Sendable {
    package static let shared = ReservedDescriptor()

    private let spare = Mutex<EpollSet?>(nil)
    /// Whether it was lost and not made again yet.
    private let isLost = Atomic<Bool>(false)

    /// Whether there is none now, though there should be.
    package var isMissing: Bool { isLost.load(ordering: .acquiring) }

    /// Its number, which changes whenever it was lent; nil when there is none. For counts of descriptors.
    package var rawValue: CInt? { spare.withLock { $0?.raw } }

    /// Makes it, if there is none.
    package func reserve() {
        spare.withLock { make(&$0) }
    }

    /// Makes it again, if it was lost and there is a descriptor for it.
    func restore() {
        if isMissing { reserve() }
    }

    /// Calls `body` while one more descriptor can be opened.
    ///
    /// - Returns: the result of `body`; false when there is no spare descriptor.
    package func lend(_ body: () -> Bool) -> Bool {
        spare.withLock { spare in
            let wasThere = spare != nil
            spare = nil
            defer { make(&spare) }
            return wasThere && body()
        }
    }

    private func make(_ spare: inout EpollSet?) {
        if spare == nil { spare = try? EpollSet() }
        isLost.store(spare == nil, ordering: .releasing)
    }
}
