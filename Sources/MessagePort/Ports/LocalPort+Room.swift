// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A sender that finds a full queue looks for a moment whether its receiver is at work, before it sleeps. A receiver that
// takes messages one after the other would otherwise let in, and wake, one sender for each: a sleep and a wake for each
// message. So the sender goes on when half of the queue is free; what is left keeps the receiver busy until then.

import PortSystem
import RunLoopCore
import Synchronization

extension LocalPort {
    /// So many looks at the queue in a row may find that nothing was taken.
    private static let looksInVain = 8
    /// How long it is not looked at: about a microsecond.
    private static let pausesBetweenLooks = 32
    private static let longestSpin = Duration.microseconds(100)

    /// Returns when there is room, or it is not worth while to wait for it without sleeping.
    func spinForRoom(until deadline: MonotonicInstant) {
        guard var count = state.withLock({ $0.mailbox.countWithoutRoom }) else { return }
        let now = MonotonicInstant.now
        guard ProcessorAllowance.shared.allowsSpinning(at: now) else { return }
        let end = min(deadline, now.advanced(by: Self.longestSpin))
        var looksInVain = 0
        while looksInVain < Self.looksInVain {
            for _ in 0..<Self.pausesBetweenLooks { sysPause() }
            guard let (newCount, limit) = state.withLock({ $0.mailbox.fill }), newCount > limit / 2, .now < end else {
                return
            }
            looksInVain = newCount < count ? 0 : looksInVain + 1
            count = newCount
        }
    }
}

extension MailboxState {
    /// How many messages wait, when a sender that comes now would be the first to wait for room; nil when it finds room, has
    /// others before it, or the port is gone.
    var countWithoutRoom: Int? {
        mutating get { isDead || hasRoom || waitingCount > 0 ? nil : queue.count }
    }

    /// How many messages wait, and how many may; nil when the port is gone or senders wait.
    var fill: (count: Int, limit: Int)? {
        isDead || waitingCount > 0 ? nil : (queue.count, limit)
    }
}
