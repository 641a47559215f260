// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// How one process wakes a loop of another: a pair of stream sockets, of which the loop's process keeps the one end, and one
// peer gets the other. A byte in it is an edge for the loop's epoll set, and means nothing else, so it is read out only now
// and then.
//
// The peer may be hostile. It cannot make a sender wait: each send says for itself that it does not, and takes no lock that the
// peer could keep, as it could keep that of a pipe. What it sends along with bytes is closed as all that comes from a peer.

import CPortShims
import PortCLibrary

/// The end of a wake channel that a loop watches.
package final class WakeChannel: Sendable {
    private let reading: SharedDescriptor  // immutable

    /// How many edges may come before the channel has to be drained: a socket has room for about 270 bytes that are sent one by
    /// one.
    package static let drainInterval = 64

    /// The descriptor to watch for edges.
    package var rawValue: CInt { reading.rawValue }

    private init(_ reading: SharedDescriptor) {
        self.reading = reading
    }

    /// Makes a channel.
    ///
    /// - Returns: the loop's end, and the other one, which goes to one peer.
    /// - Throws: EMFILE, ENFILE, ENOMEM.
    package static func make() throws(SystemError) -> (channel: WakeChannel, sending: SharedDescriptor) {
        let ends = try sysStreamSocketPair()
        let reading = SharedDescriptor(connection: FileDescriptor(owning: ends.0))
        return (WakeChannel(reading), SharedDescriptor(owning: ends.1))
    }

    /// Reads out what lies in the channel, up to 16 KiB: a peer that sends on and on keeps nobody.
    package func drain() {
        unsafe withUnsafeTemporaryAllocation(byteCount: 512, alignment: 16) { buffer in
            for _ in 0..<32 {
                guard case .packet(512, _)? = try? unsafe sysReceivePacket(rawValue, into: buffer) else { return }
            }
        }
    }
}

/// The end of a wake channel that another process made: it wakes that process's loop.
package final class WakeSender: Sendable {
    private let sending: SharedDescriptor  // immutable

    /// Takes over what another process has sent; nil when it is no stream socket of this machine: a send to another kind might wait
    /// for a lock that the peer keeps.
    ///
    /// - Parameter received: what was sent.
    package init?(_ received: SharedDescriptor) {
        guard (try? retrying(.getsockopt) { shim_is_local_stream(received.rawValue) }) == 1 else { return nil }
        sending = received
    }

    /// Sends a byte. Never waits.
    ///
    /// - Returns: false when there is no room, the loop's process has closed its end, or the kernel refuses.
    package func wake() -> Bool {
        (try? retrying(.sendmsg) { shim_send_byte(sending.rawValue) }) == 1
    }
}
