// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
import Glibc
import MessagePort
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Rights to a name with a bad record, or without a search", .shared) struct ReconnectingRecordTests {
    /// Writes a record, of an owner that is gone, that leads to a socket.
    private func point(_ name: String, to path: String, at fixture: NameFixture) throws {
        let record = try #require(NameRecord(owner: sysProcessID(), since: 0, socketPath: path))
        _ = try fixture.names.list()  // makes the directory
        try Data(record.contents).write(to: URL(fileURLWithPath: fixture.file(name)))
        #expect(chmod(try fixture.file(name), 0o600) == 0)
    }

    private func hasConnection(_ listener: SharedDescriptor) throws -> Bool {
        try sysPoll(listener.rawValue, .readable, until: .distantPast).contains(.readable)
    }

    @Test("a notice alone does not connect to the supervisor of an owner that has crashed")
    func crashed() async throws {
        try await withFixture(leaving: .anything) { fixture in
            mkdir(fixture.directory, 0o700)
            mkdir(fixture.directory + "/declared", 0o700)
            let path = "\(fixture.directory)/declared/\(try PortName("name").fileName)"
            let supervisor = try packetListener(at: path)
            try point("name", to: path, at: fixture)
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                let states = Recorder<SendRight.State>("states")
                try right.notifyWhenStateChanges(from: .interrupted(nil), on: loop) { states.append($0) }
                let local = try fixture.local()
                #expect(states.waitUntilCount(1) == [.connected])
                #expect(try !hasConnection(supervisor))
                local.invalidate()
            }
        }
    }

    @Test("the search connects to no socket outside the directory")
    func outside() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let listener = try packetListener(at: fixture.scratch.path("outside"))
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                let room = Recorder<SendPossibility>("room")
                try right.notifyWhenSendPossible(on: loop) { room.append($0) }
                try point("name", to: fixture.scratch.path("outside"), at: fixture)
                let local = try fixture.local()
                #expect(room.waitUntilCount(1) == [.possible])
                #expect(try !hasConnection(listener))
                local.invalidate()
            }
        }
    }

    @Test(
        "a record that leads to no port is no end: the right goes on, and is a dead name in another message meanwhile")
    func badRecord() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let path = fixture.scratch.path("stream")
            let stream = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(stream) }
            try sysBind(stream, path: path)
            try sysListen(stream, backlog: 1)
            try point("name", to: path, at: fixture)
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .malformedPacket)
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            #expect(failure { _ = try right.destination.address() }?.code == .invalidPort)
            #expect(failure { try right.send(MachMessage(), within: .milliseconds(5)) }?.code == .nameWaitTimedOut)
            #expect(right.state() == .interrupted(nil))
            let sender = runOnThread { try right.send(MachMessage(id: 1), within: longTimeout) }
            let local = try fixture.local()
            try sender.join()
            #expect(try local.port.receive(within: .zero)?.id == 1)
            local.invalidate()
        }
    }

    @Test("a right that was refused is a dead name in another message")
    func refused() async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withReadyPeer(
                ["policy", "users:4294967294", "serve", fixture.directory, "name"], at: fixture
            ) { _ in
                #expect(failure { _ = try right.request(MachMessage()) }?.code == .peerRefused)
                try withLoopThread { loop in
                    let reasons = Recorder<PortEndReason>("reasons")
                    try right.notifyWhenDead(on: loop) { reasons.append($0) }
                    #expect(reasons.waitUntilCount(1) == [.refused(.peerRefused)])
                }
                #expect(failure { _ = try right.destination.address() }?.code == .invalidPort)
            }
        }
    }

    #if PORT_FAULTS
    @Test("a notice is refused when its search fails at once, and goes on when only descriptors lack")
    func failedSearch() async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                let states = Recorder<SendRight.State>("states")
                let watches = SystemCallFaults.Rule(.inotify_init, .fail(EMFILE), times: .max)
                let refused = SystemCallFaults.with([watches]) {
                    [
                        failure { try right.notifyWhenStateChanges(from: .interrupted(nil), on: loop) { _ in } },
                        failure { try right.notifyWhenSendPossible(on: loop) { _ in } },
                    ]
                }.result
                #expect(refused.map { $0?.code } == [.watchLimit, .watchLimit])
                let files = SystemCallFaults.Rule(.open, .fail(EMFILE), times: .max)
                let error = SystemCallFaults.with([files]) {
                    failure {
                        try right.notifyWhenStateChanges(from: .interrupted(nil), on: loop) { states.append($0) }
                    }
                }.result
                #expect(error == nil)
                let local = try fixture.local()
                #expect(states.waitUntilCount(1) == [.connected])
                local.invalidate()
            }
        }
    }
    #endif
}
