// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Files of peers that block the thread that closes them.
@Suite("descriptors whose close waits", .contract) struct ForeignFileTests {
    /// Where the descriptor is when the port releases it.
    enum Location: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case brokenPacket, droppedMessage, unreadInConnection, unreadInBacklog

        var testDescription: String { rawValue }
        var isOfOther: Bool { self == .unreadInConnection || self == .unreadInBacklog }
    }

    @Test("a descriptor whose close waits for its maker delays no other client", arguments: Location.allCases)
    func linger(_ location: Location) async throws {
        try await onBench(over: .socket) { bench in
            let lingering = try LingeringSocket()
            try bench.serving({ _, message in try? message.reply(message) }) { right, port, worker in
                #expect(try right.ask(MachMessage(id: 1)).id == 1)
                let other = try bench.port(acceptsInBackground: location != .unreadInBacklog)
                let peer = try RawPeer(to: location.isOfOther ? other : port, on: bench)
                if location == .unreadInConnection { #expect(try other.tryReceive()?.id == nil) }
                // On the port's thread: it has released its own copy when it reads what was sent.
                try worker.perform {
                    let end = try lingering.takeEnd()
                    switch location {
                    case .brokenPacket: try peer.send([1, 2, 3], [end])
                    case .droppedMessage, .unreadInConnection, .unreadInBacklog:
                        try peer.send(MachMessage(id: 2, components: [.descriptor(end)]))
                    }
                }
                if location.isOfOther {
                    try worker.perform { other.invalidate() }
                    if location == .unreadInConnection { #expect(try peer.next()?.kind == .portEnded) }
                    let last = try peer.next()
                    #expect(last == nil, "\(location)")
                }
                if location == .brokenPacket { #expect(try peer.next()?.kind == .refused) }
                // Messages of several connections come in any order: first it has to be closed.
                let deadline = Watchdog.deadline
                while AsyncCloser.isIdle, .now < deadline { sched_yield() }
                #expect(try right.ask(MachMessage(id: 3)).id == 3)
                #expect(!AsyncCloser.isIdle, "the close did not wait, or a thread waited for it")
            }
            try lingering.letGo()
        }
    }
}

#if PORT_FAULTS

extension ForeignFileTests {
    @Test("a connection that is refused because no descriptor is left is closed where it delays no other")
    func refused() async throws {
        try await onBench(over: .socket) { bench in
            let lingering = try LingeringSocket()
            let port = try bench.port(acceptsInBackground: false)
            let peer = try RawPeer(to: port, on: bench)
            try { try peer.send(MachMessage(id: 2, components: [.descriptor(lingering.takeEnd())])) }()
            let (message, hits) = try SystemCallFaults.with([.init(.accept, .fail(EMFILE))]) { try port.tryReceive() }
            #expect(message?.id == nil && hits == 1)
            let deadline = Watchdog.deadline
            while AsyncCloser.isIdle, .now < deadline { sched_yield() }
            #expect(!AsyncCloser.isIdle, "a thread waited for the close")
            #expect(try peer.next()?.kind == .refused)
            let next = try RawPeer(to: port, on: bench)
            try next.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
            try lingering.letGo()
        }
    }
}

#endif
