// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem

/// What tests need to know of sleeps on words.
package enum SleepOnWords {
    /// Whether this system has io_uring(7), lets words be waited for with it, and neither it nor the environment forbids it.
    package static let isAllowed: Bool = {
        if CombinedSleep.isUnwanted { return false }
        guard let ring = try? makeRing(), let bell = try? WakeDescriptor() else { return false }
        guard var sleep = try? CombinedSleep(watching: bell.raw) else { return false }
        sleep.want(ring.word)
        return (try? sleep.sleep(until: .distantPast)) != nil
    }()

    /// A ring whose other end is anybody's.
    package static func makeRing() throws(SystemError) -> RecordRing {
        RecordRing(try SharedMemory.make(size: RecordRing.pairSize).memory, isSecond: false)
    }
}
