// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How one process wakes a loop of another: a pair of stream sockets. The loop's process retains one end, and one peer
// gets the other. Both ends are shut down from the beginning, so nothing can be sent through them, neither bytes nor
// descriptors. Another shutdown of the peer's end changes nothing, but is an edge for the loop's epoll set: at each
// shutdown of one end the kernel notifies those that watch the other (`sk_state_change`). There is nothing to drain,
// and no buffer that could fill up.
//
// The peer may be hostile. It cannot make a sender wait: a shutdown takes no lock that a thread could hold while it
// sleeps, as it could hold that of a pipe.

import CPortShims
import PortCLibrary
import Synchronization

/// The end of a wake channel that a loop watches.
package final class WakeChannel: Sendable {
    private let watched: SharedDescriptor  // immutable

    /// Whether this process has seen that a second shutdown is an edge.
    private static let isProven = Atomic(false)

    /// The descriptor to watch for edges.
    package var rawValue: CInt { watched.rawValue }

    private init(_ watched: SharedDescriptor) {
        self.watched = watched
    }

    /// Makes a channel.
    ///
    /// - Returns: the loop's end, and the other end, which is for one peer.
    /// - Throws: EMFILE, ENFILE, ENOMEM; EOPNOTSUPP where a second shutdown is no edge.
    package static func make() throws(SystemError) -> (channel: WakeChannel, sending: SharedDescriptor) {
        // EACCES is the error of a security module.
        try Refusals.wakeChannel.remember({ $0.isRefusal || $0.code == EACCES }) { () throws(SystemError) in
            if !isProven.load(ordering: .relaxed) {
                try prove()
                isProven.store(true, ordering: .relaxed)
            }
            return try makePair()
        }
    }

    private static func makePair() throws(SystemError) -> (channel: WakeChannel, sending: SharedDescriptor) {
        let (watched, sending) = try sysStreamSocketPair()
        _ = try retrying(.shutdown) { shutdown(sending.rawValue, CInt(SHUT_RDWR)) }
        return (WakeChannel(watched), sending)
    }

    /// Checks that each shutdown is an edge, as on Linux; `make` does so once in a process.
    ///
    /// - Throws: EOPNOTSUPP when it is not; EMFILE, ENFILE, ENOMEM.
    package static func prove() throws(SystemError) {
        let (channel, sending) = try makePair()
        guard let sender = WakeSender(sending) else { throw SystemError(EOPNOTSUPP) }
        let set = try EpollSet()
        try set.add(channel.rawValue, [.readable, .edgeTriggered], key: 0)
        _ = set.wait(until: .distantPast)
        for _ in 0..<2 {
            guard sender.wake(), !set.wait(until: .distantPast).isEmpty,
                set.wait(until: .distantPast).isEmpty
            else { throw SystemError(EOPNOTSUPP) }
        }
    }
}

/// The end of a wake channel that another process made: it wakes that process's loop.
package final class WakeSender: Sendable {
    private let sending: SharedDescriptor  // immutable

    /// Adopts an end that another process has sent; nil when it is not a stream socket of this machine that is shut
    /// down in both directions. A shutdown of another kind of socket might wait for a lock that the peer holds, and one
    /// of a socket in use would end that for other processes that have it.
    ///
    /// - Parameter received: the received descriptor.
    package init?(_ received: SharedDescriptor) {
        guard (try? retrying(.getsockopt) { shim_is_shut_local_stream(received.rawValue) }) == 1 else { return nil }
        sending = received
    }

    /// Wakes the loop. Never waits.
    ///
    /// - Returns: false when the kernel refuses. True does not mean that the loop's process still exists.
    package func wake() -> Bool {
        (try? retrying(.shutdown) { shutdown(sending.rawValue, CInt(SHUT_WR)) }) != nil
    }
}
