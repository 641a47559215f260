// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import MessagePort
import NamedPortServer
import PortSystem
@testable import portctl
import TestSupport
import Testing

@Suite("portctl: peers that use up descriptors", .portCensus)
struct PortctlDescriptorTests {
    @Test(
        "F-A2: a process that connects as often as it can, and reads no reply, leaves a server descriptors for others")
    func serving() async throws {
        try await withScratchDirectory { scratch in
            let limit = 256
            let server = try await PortctlServer("echo", in: scratch, descriptors: limit)
            var connections = try connect(300, to: "echo", in: scratch)
            // Others are served, whatever the server has seen of this by now.
            for _ in 0..<3 {
                #expect(try await portctl(["request", "echo", "7", "hello"], in: scratch) == done("hello"))
            }
            let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(server.process.processID)/fd")
            #expect(open.count < limit - limit / 8)
            connections = []
            #expect(connections.isEmpty)
            #expect(try await PortctlServer.stop("echo", in: scratch) == done())
            #expect(try await server.end() == done())
        }
    }

    @Test("a server that was started with too few descriptors to wait with serves when it may have more")
    func recovering() async throws {
        try await withScratchDirectory { scratch in
            var served = 0
            // From the first limit with which it starts on: there it has no descriptor left for its loop.
            for limit in 12..<200 where served < 4 {
                guard let server = try await PortctlServer.start("echo", in: scratch, descriptors: limit) else {
                    continue
                }
                served += 1
                let more = try ChildProcess(
                    "/usr/bin/prlimit", ["--pid", "\(server.process.processID)", "--nofile=256:"])
                try #require(try await more.waitForExit() == done())
                #expect(try await portctl(["request", "echo", "7", "hello"], in: scratch) == done("hello"))
                #expect(try await PortctlServer.stop("echo", in: scratch) == done())
                #expect(try await server.end() == done())
            }
            #expect(served == 4)
        }
    }

    #if PORT_FAULTS
    @Test("a command that cannot be watched while no descriptor is left is watched afterwards, and its end is known")
    func watching() async {
        await #expect(processExitsWith: .success) {
            let interrupt = try Interrupt()
            let process = try Program(["true"]).start()
            let rules = [SystemCall.pidfd_open, .epoll_create].map { SystemCallFaults.Rule($0, .fail(EMFILE)) }
            let (result, hits) = try SystemCallFaults.with(rules) {
                try Program.wait(for: process, endingAt: interrupt)
            }
            #expect(result.end == .exited(0) && !result.wasInterrupted && hits == 2)
        }
    }
    #endif

    /// Connects to a name `count` times, and sends requests each time, whose replies find no room.
    private func connect(_ count: Int, to name: String, in scratch: ScratchDirectory) throws -> [SharedDescriptor] {
        let right = try PortNameServer(directory: scratch.path("names")).lookUp(name)
        let path = try #require(right.destination as? RemotePort).address().path
        var payload = [1, 0, 0, 0] as [UInt8]
        payload.append(littleEndian: UInt32(50_000))
        payload += [UInt8](repeating: 7, count: 50_000)
        return try (0..<count).map { _ in
            let socket = SharedDescriptor(try sysPacketSocket())
            #expect(try sysConnect(socket.rawValue, path: path, until: Watchdog.deadline))
            for token in UInt64(1)...6 {
                let header = PacketHeader(
                    kind: .message, messageID: 5, componentCount: 1, asks: token, totalLength: UInt64(payload.count))
                _ = try sysSendPacket(socket.rawValue, head: header.encoded + payload, body: [], descriptors: [])
            }
            return socket
        }
    }
}
