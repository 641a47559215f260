// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import MessagePort
import NamedPortServer
import PortSystem
@testable import portctl
import TestSupport
import Testing

@Suite("portctl: peers that use up descriptors", .portLeakCheck)
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

    @Test("list --watch goes on while no descriptor is left, and shows what there is when there are some again")
    func listing() async throws {
        try await withScratchDirectory { scratch in
            let names = try PortNameServer(directory: scratch.path("names"))
            let port = MachPort()
            try names.register(port, name: "before")
            let list = try ChildProcess(
                builtProduct("portctl"),
                ["--directory", scratch.path("names"), "list", "--watch", "--names", "--json", "--interval", "1ms"])
            #expect(try await offThePool { try list.nextLine() } == "[\"before\"]")
            try await withoutDescriptors(list.processID) { try names.register(port, name: "meanwhile") }
            try await offThePool {
                var line = try list.nextLine()
                while line == "[\"before\"]" { line = try list.nextLine() }
                #expect(line == "[\"before\",\"meanwhile\"]")
            }
            list.kill(SIGINT)
            #expect(try await list.waitForExit().end == .exited(0))
            port.invalidate()
        }
    }

    @Test("activate starts its command for a client that came while no descriptor was left")
    func activating() async throws {
        try await withScratchDirectory { scratch in
            let command = ["--once", "--", try builtProduct("portctl"), "serve", "act", "-q"]
            let supervisor = try ChildProcess(
                builtProduct("portctl"), ["--directory", scratch.path("names"), "activate", "act"] + command)
            // The set with which it waits is the last descriptor that it opens.
            await offThePool {
                while !hasEpollSet(supervisor.processID), supervisor.isRunning { yieldThread() }
            }
            async let reply = try withoutDescriptors(supervisor.processID) {
                try ChildProcess(
                    builtProduct("portctl"), ["--directory", scratch.path("names"), "request", "act", "1", "hello"])
            }
            #expect(try await reply.waitForExit() == done("hello"))
            #expect(try await PortctlServer.stop("act", in: scratch) == done())
            #expect(try await supervisor.waitForExit().end == .exited(0))
        }
    }

    /// Runs `body` while a process may open no descriptor, until it has waited several times.
    private func withoutDescriptors<Result: Sendable>(
        _ process: pid_t, _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        func limit(_ number: Int) async throws {
            let prlimit = try ChildProcess("/usr/bin/prlimit", ["--pid", "\(process)", "--nofile=\(number):256"])
            try #require(try await prlimit.waitForExit() == done())
        }
        try await limit(3)
        let result = try await offThePool {
            let before = try waits(of: process)
            let result = try body()
            let deadline = Watchdog.deadline
            while try waits(of: process) < before + 4, .now < deadline { yieldThread() }
            return result
        }
        try await limit(256)
        return result
    }

    private func hasEpollSet(_ process: pid_t) -> Bool {
        let directory = "/proc/\(process)/fd"
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return descriptors.contains { descriptor in
            let file = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(descriptor)")
            return file == "anon_inode:[eventpoll]"
        }
    }

    /// How often a process has waited in the kernel.
    private func waits(of process: pid_t) throws -> Int {
        let file = try sysOpen("/proc/\(process)/status", .reading)
        let lines = String(decoding: try sysReadAll(file.raw), as: UTF8.self).split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix("voluntary_ctxt_switches:") })
        return try #require(Int(line.split(separator: "\t").last ?? ""))
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

    @Test("a signal ends a command that cannot be watched because no descriptor is left")
    func signalling() async {
        await #expect(processExitsWith: .success) {
            let interrupt = try Interrupt()
            let process = try Program(["sleep", "600"]).start()
            try sysKill(sysProcessID(), SIGTERM)
            let rule = SystemCallFaults.Rule(.pidfd_open, .fail(EMFILE), times: .max)
            let (result, _) = try SystemCallFaults.with([rule]) {
                try Program.wait(for: process, endingAt: interrupt)
            }
            #expect(result.end == .signalled(SIGTERM) && result.wasInterrupted)
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
