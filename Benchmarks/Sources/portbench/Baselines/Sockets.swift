// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls

extension Contestant {
    /// Round trips over a bare Unix socket between two processes, each side waiting in epoll.
    static func socketPair(
        _ kind: bare_socket_kind, there: Int = Packet.size, back: Int = Packet.size, on placement: Placement = .anywhere
    ) throws -> Contestant {
        let child = try BareChild(kind, .answer, [there, back], at: placement.far)
        return Contestant(
            name: kind == bare_packets ? "bare SEQPACKET + epoll" : "bare stream socket",
            run: { count, laps in
                let time = try placement.near.run {
                    bare_socket_run(child.socket, there, back, Int64(count), laps?.filled(count))
                }
                if time < 0 { throw BenchmarkFailure("the child with the bare socket has ended") }
                return time
            },
            end: child.end)
    }

    /// Packets of 64 bytes to another process, `batch` of them in one system call.
    static func packetStream(batch: Int) throws -> Contestant {
        let child = try BareChild(bare_packets, .sink, [Packet.size, batch])
        return Contestant(
            name: batch > 1 ? "bare SEQPACKET, sendmmsg" : "bare SEQPACKET + epoll", timesLaps: false,
            run: { count, _ in bare_socket_send(child.socket, Packet.size, Int64(count), UInt32(batch)) },
            end: child.end)
    }
}
