// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How the descriptors that this process may have, its soft limit RLIMIT_NOFILE, are shared, so that neither a peer nor
// a kind of use exhausts them. Of eight parts, one other process may have at a port, unless the port sets other limits:
//
//   one       in connections
//   two       in messages and replies, or waiting to be closed; and as many again with the message that goes above that
//
// Two parts are for the wake channels of rings, of all connections together. And whatever the limits are, all peers
// together, at all ports, never get the last part: it is reserved for the process itself.

import PortSystem
import Synchronization

/// The shares of the process's descriptors, one for each kind of use.
struct DescriptorShares {
    /// How many the process may have. It is read anew each time: a program may change it while it runs.
    var limit = sysDescriptorLimit()

    /// Connections of one other process at a port.
    var connections: Int { min(256, max(1, limit / 8)) }

    /// Descriptors that came from it in messages, or that it has not read in replies.
    var queued: Int { min(512, max(1, limit / 4)) }

    /// Descriptors in one message from another process. A message with more arrives without them, which is an error.
    var inMessage: Int { min(MessageLimits.descriptors, limit / 4) }

    /// Descriptors that come from peers must have a number below this one. The kernel gives the lowest free number, so
    /// all below this one are in use when it gives this one or a higher one.
    var peerBound: Int { limit - limit / 8 }

    /// Checks a descriptor that the kernel has opened for a peer.
    ///
    /// - Returns: whether it may stay open.
    func admits(_ descriptor: CInt) -> Bool { Int(descriptor) < peerBound }

    /// Checks the descriptors that came with a packet. `count` is the number in the packet's head: all of the message's.
    func admits(_ descriptors: [SharedDescriptor], of count: Int) -> Bool {
        count <= inMessage && descriptors.allSatisfy { admits($0.rawValue) }
    }

    /// The channels that wake the consumers of rings, of all connections of the process together: a quarter.
    var wakeChannels: Int { limit / 4 }
}

/// Counts the descriptors of one kind in this process against a limit.
package final class DescriptorBudget: Sendable {
    /// For the channels that wake the consumers of rings.
    package static let wakeChannels = DescriptorBudget { DescriptorShares().wakeChannels }

    private let limit: @Sendable () -> Int  // immutable
    private let reserved = Atomic<Int>(0)

    /// How many are counted now.
    package var count: Int { reserved.load(ordering: .relaxed) }

    init(limit: @escaping @Sendable () -> Int) { self.limit = limit }

    /// Counts descriptors that are about to be opened, all or none. Each call that returns true needs a `release`.
    ///
    /// - Returns: whether the limit has room for them.
    package func reserve(_ count: Int) -> Bool {
        let limit = limit()
        var known = reserved.load(ordering: .relaxed)
        while known + count <= limit {
            let (isReserved, now) = reserved.weakCompareExchange(
                expected: known, desired: known + count, ordering: .relaxed)
            if isReserved { return true }
            known = now
        }
        return false
    }

    /// Removes descriptors from the count: they are closed, or could not be opened.
    package func release(_ count: Int) { reserved.subtract(count, ordering: .relaxed) }
}
