// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// Descriptors that arrive faster than they can be closed.
@Suite("descriptors that wait to be closed", .contract) struct PendingClosesTests {
    /// What happens to a message whose descriptors are not used.
    enum Outcome: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case unwantedAnswer, takenMessage, brokenPacket

        var testDescription: String { rawValue }
    }

    private static let perMessage = 25
    private static let count = 20

    @Test(
        "a peer that sends more descriptors than are closed is not read until some are; others are served",
        arguments: Outcome.allCases)
    func flood(_ outcome: Outcome) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 4)
            var limits = PeerLimits()
            limits.queuedDescriptors = 20
            port.setPeerLimits(limits)
            let peer = try RawPeer(to: port, on: bench)
            let token = try peer.givenUpToken(at: port)
            let (near, far) = try sysPacketSocketPair()
            let identity = PeerIdentity(processID: .max, userID: 0, groupID: 0)
            try #require(port.localPort.sockets).add(SocketConnection(near, port: port.localPort, peer: identity))
            let other = RawPeer(far)
            let pipe = try TestPipe()
            let message = MachMessage(
                id: 1, components: Array(repeating: .descriptor(pipe.writing), count: Self.perMessage))
            let before = openCount()
            var broken: [RawPeer] = []
            try AsyncCloser.suspended {
                for _ in 0..<Self.count {
                    switch outcome {
                    case .unwantedAnswer: try peer.send(message, answers: token)
                    case .takenMessage: try peer.send(message)
                    case .brokenPacket:
                        broken.append(try RawPeer(to: port, on: bench))
                        try broken.last?.send([1, 2, 3], Array(repeating: pipe.writing, count: Self.perMessage))
                    }
                    _ = try port.tryReceive()
                }
                // The ends of connections are no part of the flood.
                #expect(openCount() - before - 2 * broken.count < 4 * Self.perMessage)
                try expectNoReports(of: port)
                try other.send(MachMessage(id: 5))
                #expect(try port.next().id == 5)
            }
            try peer.send(MachMessage(id: 77))
            while try port.next().id != 77 {}
            for peer in broken {
                let deadline = Watchdog.deadline
                while try sysPoll(peer.socket.rawValue, .readable, until: .distantPast).isEmpty, .now < deadline {
                    _ = try port.tryReceive()
                }
                #expect(try peer.next()?.kind == .refused)
            }
        }
    }

    /// A connection at the right's end, to which a port listens, and over which descriptors come that are not used.
    private struct RightsEnd {
        var right: SendRight?
        var peer: RawPeer?
        let connection: SocketConnection
        let listening: MachPort
        let sockets: PortSockets
        private let token: UInt64

        init(on bench: Bench) throws {
            let listener = try RawListener(bench.directory.path + "/raw")
            let remote = try #require(try RightsTable.connect(to: listener.address))
            (right, peer) = (SendRight(remote), try listener.accept())
            connection = try #require(remote.connection)
            token = try connection.givenUpToken()
            listening = try bench.port()
            sockets = try listening.localPort.openSockets()
            try sockets.add(connection)
        }

        func receive() { sockets.receive(into: listening.localPort) }

        /// More than may wait to be closed.
        func flood() throws {
            let pipe = try TestPipe()
            let message = MachMessage(components: Array(repeating: .descriptor(pipe.writing), count: 253))
            for _ in 0..<6 {
                try peer?.send(message, answers: token)
                receive()
            }
        }
    }

    @Test("at the right's end nothing is read while too many descriptors wait, no loop spins, and reading resumes")
    func rightsEnd() async throws {
        try await onBench(over: .socket) { bench in
            let end = try RightsEnd(on: bench)
            let (right, peer) = (try #require(end.right), try #require(end.peer))
            let before = openCount()
            try AsyncCloser.suspended {
                try end.flood()
                #expect(openCount() - before < 4 * 253)
                #expect(end.sockets.epoll.wait(until: .distantPast).isEmpty)
            }
            let other = runOnThread {
                while let request = try peer.next() {
                    if request.asks != 0 { return try peer.send(MachMessage(id: 9), answers: request.asks) }
                }
            }
            #expect(try right.ask(MachMessage()).id == 9)
            try other.join()
        }
    }

    @Test("a connection that is closed while it waits, and whose peer has gone, is no longer watched")
    func closedWhileItWaits() async throws {
        try await onBench(over: .socket) { bench in
            var end = try RightsEnd(on: bench)
            try AsyncCloser.suspended {
                try end.flood()
                #expect(end.connection.isPaused)
                end.peer = nil
                end.receive()
                #expect(end.sockets.state.withLock { $0.unwatched.count } == 1)
                end.right = nil
                #expect(end.connection.isClosed)
            }
            end.receive()
            #expect(end.sockets.state.withLock { $0.members.isEmpty })
        }
    }

    @Test("a port that ends reads no more descriptors out of its connections than can wait")
    func portEnd() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            #expect(try port.tryReceive()?.id == nil)
            let pipe = try TestPipe()
            let message = MachMessage(components: Array(repeating: .descriptor(pipe.writing), count: 253))
            let before = openCount()
            try AsyncCloser.suspended {
                for _ in 0..<8 { try peer.send(message) }
                port.invalidate()
                #expect(openCount() - before < 4 * 253)
            }
            #expect(try peer.next()?.kind == .portEnded)
            #expect(try peer.next() == nil)
        }
    }

    private func openCount() -> Int { (CInt(0)..<8192).count { fcntl($0, F_GETFD) >= 0 } }

    /// The sockets report nothing, so the port's loop sleeps.
    private func expectNoReports(of port: MachPort) throws {
        let sockets = try #require(port.localPort.sockets)
        #expect(sockets.epoll.wait(until: .distantPast).isEmpty)
    }
}

#endif
