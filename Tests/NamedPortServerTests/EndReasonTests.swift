// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// A reason as this system reports it: one without `SO_PEERPIDFD` (Linux 6.5) does not say how another process has ended.
func reported(_ reason: PortEndReason) throws -> PortEndReason {
    switch reason {
    case .exited, .killed, .processEnded:
        let (end, other) = try sysPacketSocketPair()
        defer { withExtendedLifetime(other) {} }
        return (try? sysPeerProcess(end.rawValue)) == nil ? .unknown : reason
    default: return reason
    }
}

@Suite("Why a port has ended", .shared) struct EndReasonTests {
    /// The reasons that a notice of a right, and one of an object, have, when `body` ends the port of a server process.
    private func reasons(
        _ end: ProcessEnd, _ expected: PortEndReason, _ body: @escaping @Sendable (RemoteMessagePort) throws -> Void
    ) async throws {
        let expected = try reported(expected)
        try await withFixture(leaving: .anything) { fixture in
            try withLoopThread { loop in
                let reasons = Recorder<PortEndReason>("reasons")
                let port = try withServer("name", at: fixture, endsAs: end) { _ in
                    let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                    try port.setInvalidationHandler(on: loop) { reasons.append($0) }
                    try port.right.notifyWhenDead(on: loop) { reasons.append($0) }
                    try body(port)
                    #expect(reasons.waitUntilCount(2) == [expected, expected])
                    return port
                }
                #expect(port.state() == .invalid(expected))
            }
        }
    }

    @Test("a signal has killed its process")
    func killed() async throws {
        try await reasons(.signalled(SIGKILL), .killed(signal: SIGKILL)) { port in
            #expect(failure { _ = try port.ask(Act.die) }?.code == .peerDied)
        }
    }

    @Test("its process has exited with a status")
    func exited() async throws {
        try await reasons(.exited(3), .exited(status: 3)) { port in
            #expect(failure { _ = try port.ask(Act.exit, "3") }?.code == .peerDied)
        }
    }

    @Test("its owner has invalidated it, whose process then exits")
    func invalidated() async throws {
        try await reasons(.exited(0), .invalidated) { port in
            let reply = try port.ask(Act.leave)
            #expect(reply == "gone")
        }
    }

    @Test("the owner's policy refuses this process, or its limit of connections does")
    func refused() async throws {
        let cases: [([String], PortEndReason)] = [
            (["policy", "users:4294967294"], .refused(.peerRefused)),
            (["connections", "1"], .quota(.tooManyConnections)),
        ]
        for (words, expected) in cases {
            try await withFixture { fixture in
                try withReadyPeer(words + ["serve", fixture.directory, "name"], at: fixture) { _ in
                    try withLoopThread { loop in
                        let reasons = Recorder<PortEndReason>("reasons")
                        let first = try fixture.names.lookUp("name")
                        let second = try #require(try RightsTable.connect(to: first.destination.address()))
                        try SendRight(second).notifyWhenDead(on: loop) { reasons.append($0) }
                        #expect(reasons.waitUntilCount(1) == [expected])
                    }
                }
            }
        }
    }

    @Test("a port of this process, and an object that is invalidated, say so", arguments: Transport.allCases)
    func local(over transport: Transport) async throws {
        try await withFixture { fixture in
            try withLoopThread { loop in
                let reasons = Recorder<PortEndReason>("reasons")
                let local = try fixture.local()
                let (port, other) = (try fixture.remote(over: transport), try fixture.remote(over: transport))
                // A connection that was not accepted would end without a reason.
                try local.schedule(on: loop)
                #expect(try port.ask(Act.reverse, "on") == "no")
                try other.setInvalidationHandler(on: loop) { reasons.append($0) }
                other.invalidate()
                #expect(reasons.waitUntilCount(1) == [.invalidatedHere])
                #expect(other.state() == .invalid(.invalidatedHere))
                #expect(port.state() == .connected)
                try port.right.notifyWhenDead(on: loop) { reasons.append($0) }
                local.invalidate()
                #expect(reasons.waitUntilCount(2).last == .invalidated)
                try port.setInvalidationHandler(on: loop) { reasons.append($0) }
                #expect(reasons.waitUntilCount(3).last == .invalidated)
                #expect(port.state() == .invalid(.invalidated))
            }
        }
    }

    @Test("a state is reported once, with the reason of the end, also when it is asked for after the end")
    func states() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withLoopThread { loop in
                let states = Recorder<SendRight.State>("states")
                let expected = SendRight.State.invalid(try reported(.killed(signal: SIGKILL)))
                try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { _ in
                    let right = try fixture.names.lookUp("name")
                    #expect(failure { _ = try right.request(MachMessage(id: Act.die)) }?.code == .peerDied)
                    try right.notifyWhenStateChanges(from: .connected, on: loop) { states.append($0) }
                    #expect(states.waitUntilCount(1) == [expected])
                    #expect(right.state() == expected)
                    try right.notifyWhenStateChanges(from: expected, on: loop) { _ in Issue.record("again") }
                }
                let local = try fixture.local()
                let right = local.port.makeSendRight()
                local.invalidate()
                #expect(right.state() == .invalid(.invalidated))
                try right.notifyWhenStateChanges(from: .connected, on: loop) { states.append($0) }
                #expect(states.waitUntilCount(2).last == .invalid(.invalidated))
            }
        }
    }

    @Test("each reason is the end of a sentence")
    func descriptions() {
        let reasons: [PortEndReason] = [
            .invalidated, .invalidatedHere, .exited(status: 3), .killed(signal: 9), .processEnded,
            .refused(.peerRefused), .quota(.tooManyConnections), .unknown,
        ]
        #expect(Set(reasons.map(\.description)).count == reasons.count)
        #expect(PortEndReason.exited(status: 3).description == "its process exited with status 3")
    }
}
