// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Another user than this one: `nobody`.
private let stranger = "65534"

@Suite(
    "Other users", .leakCheck(warmingUp: makeSpareDescriptor),
    .enabled(if: sysUserID() == 0, "only root can become another user"))
struct StrangersTests {
    @Test("another user cannot look a name up")
    func lookUp() async throws {
        try await withFixture { fixture in
            chmod(fixture.scratch.path, 0o711)
            try withServer("name", at: fixture) { _ in
                for directory in [fixture.directory, fixture.directory + "/"] {
                    try withPeer(["as", stranger, "ask", directory, "name", "1", "abc"], at: fixture) { peer in
                        try peer.expect("error directoryUntrusted")
                    }
                    try withPeer(["as", stranger, "hold", directory], at: fixture) { peer in
                        try peer.expect("error directoryUntrusted")
                    }
                }
            }
        }
    }

    @Test("no process trusts a directory that was opened to others from then on, its owner's included")
    func openedLater() async throws {
        try await withFixture { fixture in
            chmod(fixture.scratch.path, 0o711)
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            chmod(fixture.directory, 0o711)
            #expect(failure { _ = try PortNameServer(directory: fixture.directory) }?.code == .directoryUntrusted)
            try withPeer(["as", stranger, "ask", fixture.directory, "name", "1", "abc"], at: fixture) { peer in
                try peer.expect("error directoryUntrusted")
            }
            chmod(fixture.directory, 0o700)
            port.invalidate()
        }
    }

    /// Waits until the port has accepted a client.
    private func awaitClient(of port: LocalPort) {
        let deadline = Watchdog.deadline
        while port.connectionCount == 0 {
            if .now >= deadline { return Watchdog.expired("the port accepts its client") }
            yieldThread()
        }
    }

    /// What a peer prints that has received a packet.
    private func received(_ header: PacketHeader) -> String {
        "received " + header.encoded.map { String($0, radix: 16) }.joined(separator: " ")
    }

    @Test("another user that reaches the socket is refused before any byte from it is read")
    func rawConnection() async throws {
        try await withFixture { fixture in
            let seen = Counter()
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                seen.increment()
                return message.bytes
            }
            let socket = try fixture.socket("name")
            for path in [fixture.scratch.path, fixture.directory, fixture.directory + "/sockets"] { chmod(path, 0o711) }
            chmod(socket, 0o777)
            try withLoopThread { loop in
                try local.schedule(on: loop)
                try withPeer(["as", stranger, "connect-raw", socket], at: fixture) { peer in
                    try peer.expect("connected")
                    try peer.expect(
                        received(PacketHeader(kind: .refused, messageID: Int32(PortError.Code.peerRefused.rawValue))))
                }
                #expect(seen.value == 0)
                #expect(local.port.localPort.connectionCount == 0)
                // And its own user is served as before.
                try withPeer(["connect-raw", socket], at: fixture) { peer in
                    try peer.expect("connected")
                    awaitClient(of: local.port.localPort)
                    local.invalidate()
                    try peer.expect(received(PacketHeader(kind: .portEnded)))
                }
            }
        }
    }

    @Test(
        "F-B2: a program with more rights than the user that started it uses nothing of that user's environment",
        .disabled(if: hasAddressSanitizer, "the address sanitizer needs that environment"))
    func privileged() async throws {
        try await withFixture { fixture in
            chmod(fixture.scratch.path, 0o711)
            let program = fixture.scratch.path("peer")
            try FileManager.default.copyItem(atPath: builtProduct("port-test-peer"), toPath: program)
            let names = [PortDirectory.variable, "XDG_RUNTIME_DIR", "SWIFT_PORT_TRACE", "SWIFT_PORT_BOOTSTRAP"]
            // On a file system that gives no program more rights, as in many containers, the test does not apply.
            var system = statvfs()
            try #require(statvfs(program, &system) == 0)
            let expected = system.f_flag & UInt(ST_NOSUID) == 0 ? "no variable" : "variable /theirs"
            for (mode, expected) in [(0o755, "variable /theirs"), (0o4755, expected), (0o2755, expected)] {
                chmod(program, mode_t(mode))
                for name in names {
                    let words = ["--reuid", stranger, "--regid", stranger, "--clear-groups", program, "variable", name]
                    let child = try ChildProcess("/usr/bin/setpriv", words, environment: [name: "/theirs"])
                    try child.expect(expected)
                    #expect(try child.waitForExit().end == .exited(0))
                }
            }
            unlink(program)
        }
    }

    @Test("F-B7: a directory that another user has made first is an error that reports it")
    func madeFirst() async throws {
        try await withFixture { fixture in
            let path = fixture.scratch.path("swift-ports-0")
            mkdir(path, 0o700)
            chown(path, 65534, 65534)
            let error = failure { _ = try PortNameServer(directory: path) }
            #expect(error?.code == .directoryUntrusted)
            #expect(error.map { "\($0)" }?.contains("it belongs to another user") == true)
            #expect(error.map { "\($0)" }?.contains("SWIFT_PORT_DIRECTORY") == true)
            rmdir(path)
        }
    }

    @Test("a policy that admits another user admits it, and the message has its identity")
    func admitted() async throws {
        try await withFixture { fixture in
            let asked = Recorder<PeerIdentity>()
            let process = Recorder<Result<PeerProcess, PortError>>()
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in message.bytes }
            local.port.setPeerPolicy(
                PeerPolicy { peer in
                    asked.append(peer.identity)
                    process.append(Result { () throws(PortError) in try peer.openProcess() })
                    return true
                })
            let socket = try fixture.socket("name")
            for path in [fixture.scratch.path, fixture.directory, fixture.directory + "/sockets"] { chmod(path, 0o711) }
            chmod(socket, 0o777)
            try withLoopThread { loop in
                try local.schedule(on: loop)
                var child: Int32 = 0
                try withPeer(["as", stranger, "connect-raw", socket], at: fixture) { peer in
                    child = peer.processID
                    try peer.expect("connected")
                    switch try #require(process.waitUntilCount(1).first) {
                    case .success(let opened):
                        #expect(!opened.hasEnded() && opened.identity.processID == child)
                        #expect(opened.startTime != nil && opened.startTime == sysProcessStart(child))
                    case .failure(let error): #expect(error.systemError == Refusals.peerProcess.error)
                    }
                    awaitClient(of: local.port.localPort)
                    local.invalidate()
                    try peer.expect(received(PacketHeader(kind: .portEnded)))
                }
                let identity = try #require(asked.waitUntilCount(1).first)
                #expect(asked.elements.count == 1)
                #expect(String(identity.userID) == stranger)
                #expect(identity.processID == child)
                // Its end can be waited for, though another process may have its number by now.
                if case .success(let ended)? = process.elements.first {
                    #expect(try !sysPoll(ended.descriptor.rawValue, .readable, until: Watchdog.deadline).isEmpty)
                }
            }
        }
    }
}
