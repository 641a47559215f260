// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Glibc

extension Contestant {
    /// Round trips over a bare Unix socket between two processes, each side waiting in epoll.
    ///
    /// Nested: in a set within a set, as a loop that serves a port's sockets, and with a check whether the socket is
    /// empty.
    static func socketPair(
        _ kind: bare_socket_kind, there: Int = Packet.size, back: Int = Packet.size, nested: Bool = false,
        on placement: Placement = .anywhere
    ) throws -> Contestant {
        let child = try BareChild(kind, .answer, [nested ? 1 : 0, there, back], at: placement.far)
        let name = kind == bare_packets ? "bare SEQPACKET + epoll" : "bare stream socket"
        return Contestant(
            name: nested ? "\(name), nested" : name,
            run: { count, laps in
                let time = try placement.near.run {
                    bare_socket_run(child.socket, nested ? 1 : 0, there, back, Int64(count), laps?.filled(count))
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

    /// Packets of 64 bytes from another process over `number` connections.
    static func socketField(_ number: Int) throws -> Contestant {
        _ = bare_allow_descriptors(UInt64(number * 2 + 1_000))  // this side needs as many
        guard let field = bare_socket_field_start(Int32(number)) else {
            throw NotAvailable("\(number) bare sockets: errno \(errno)")
        }
        return Contestant(
            name: "bare SEQPACKET + epoll", timesLaps: false,
            run: { count, _ in
                let time = bare_socket_field_run(field, Int64(count))
                if time < 0 { throw BenchmarkFailure("the child with the bare sockets has ended") }
                return time
            },
            end: { bare_socket_field_end(field) })
    }
}
