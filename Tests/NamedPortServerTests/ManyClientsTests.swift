// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Ten thousand clients", .leakCheck(warmingUp: makeSpareDescriptor))
struct ManyClientsTests {
    /// Fewer than a port accepts from one process.
    static let connectionsPerProcess = 200
    /// Fewer under a sanitizer, with which each process takes seconds of a processor.
    static let processes = sysEnvironment("PORT_CLIENT_PROCESSES").flatMap { Int($0) } ?? 50

    @Test(
        "10,000 connections to one named port, open at once, are each answered; afterwards nothing of them stays",
        .enabled(if: hasDescriptors, "needs 10,200 descriptors in a process (RLIMIT_NOFILE)"))
    func tenThousand() async throws {
        try await withFixture { fixture in
            try withReadyPeer(["unlimited", "serve", fixture.directory, "name"], at: fixture) { server in
                let sockets = try Self.sockets(of: server)
                // A first client makes what the server retains.
                try withPeer(["ask", fixture.directory, "name", "1", "ab"], at: fixture) { try $0.expect("reply ba") }
                expectSoon("the first client's end") { (try? Self.sockets(of: server)) == sockets }
                let (descriptors, memory) = (try Self.descriptors(of: server), try Self.memory(of: server))
                var clients: [ChildProcess] = []
                let result = Result { try Self.connect(&clients, at: fixture) }
                let (most, mostMemory) = (try Self.descriptors(of: server), try Self.memory(of: server))
                for client in clients { client.closeInput() }
                for client in clients { #expect(try client.waitForExit().end == .exited(0)) }
                try result.get()
                let count = Self.connectionsPerProcess * Self.processes
                #expect(most >= descriptors + count)
                expectSoon("the clients' ends") { (try? Self.descriptors(of: server)) == descriptors }
                let port = try RemoteMessagePort(name: "name", nameServer: fixture.names)
                #expect(try port.ask(Act.reverse, "on") == "no")
                print(
                    "\(count) connections to one port: the server has \(most) descriptors, \(descriptors) before; "
                        + "\(mostMemory) KiB resident, \(memory) before, \(try Self.memory(of: server)) after them: "
                        + "\((mostMemory - memory) * 1024 / count) bytes for each")
            }
        }
    }

    /// Starts the clients and waits until each of their requests was answered; their connections stay.
    private static func connect(_ clients: inout [ChildProcess], at fixture: NameFixture) throws {
        let arguments = ["unlimited", "connect-and-stay", fixture.directory, "name", "\(connectionsPerProcess)"]
        for _ in 0..<processes {
            clients.append(try ChildProcess(builtProduct("port-test-peer"), arguments))
        }
        for client in clients { try client.expect("replies \(connectionsPerProcess)") }
    }

    private static func sockets(of process: ChildProcess) throws -> Int {
        let directory = "/proc/\(process.processID)/fd"
        return try FileManager.default.contentsOfDirectory(atPath: directory).filter { name in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(directory)/\(name)")
            return target?.hasPrefix("socket:") == true
        }.count
    }

    private static func descriptors(of process: ChildProcess) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.processID)/fd").count
    }

    /// The resident memory in KiB.
    private static func memory(of process: ChildProcess) throws -> Int {
        let file = try sysOpen("/proc/\(process.processID)/status", .reading)
        let status = try sysReadAll(file.raw)
        let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return try #require(line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) })
    }

    /// Whether a process may have enough descriptors.
    private static let hasDescriptors: Bool = {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return isKnown && limit.rlim_max >= connectionsPerProcess * processes + 200
    }()
}
