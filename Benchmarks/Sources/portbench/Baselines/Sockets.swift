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

    /// Packets of 64 bytes over `number` connections, from client processes to another one.
    static func socketField(_ number: Int) throws -> Contestant {
        let server = try BareChild(bare_packets, .socketField, [number])
        func report() throws -> Int64 {
            var report: Int64 = 0
            guard recv(server.socket, &report, MemoryLayout<Int64>.size, 0) == MemoryLayout<Int64>.size else {
                throw BenchmarkFailure("the child with the bare sockets has ended")
            }
            return report
        }
        let code = try report()
        if code != 0 {
            server.end()
            throw NotAvailable("\(number) bare sockets: errno \(code)")
        }
        return Contestant(
            name: "bare SEQPACKET + epoll", timesLaps: false,
            run: { count, _ in
                var order = Int64(count)
                send(server.socket, &order, MemoryLayout<Int64>.size, Int32(MSG_NOSIGNAL))
                return try report()
            },
            end: server.end)
    }

    /// How many nanoseconds the first and the last packet take when all clients connect at once, each to all listeners.
    static func connectingSockets(listeners: Int, clients: Int) throws -> (first: Int64, last: Int64) {
        let server = try BareChild(bare_packets, .connecting, [listeners, clients])
        defer { server.end() }
        var result = bare_first_packets()
        guard recv(server.socket, &result, MemoryLayout<bare_first_packets>.size, 0) > 0 else {
            throw BenchmarkFailure("the child with the bare sockets has ended")
        }
        if result.error != 0 { throw NotAvailable("\(listeners * clients) bare sockets: errno \(result.error)") }
        return (result.first, result.last)
    }
}
