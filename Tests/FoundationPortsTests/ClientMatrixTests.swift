// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import RunLoopCore
import TestSupport
import Testing

/// CFMessagePort, this package's own ports and `portctl`, each as a server and as a client of the others. They settle:
/// dispatch releases a port that a queue has served when its own threads have run.
@Suite("CFMessagePort: matrix", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct ClientMatrixTests {
    /// Sends a message, and asks another, as a client of a kind. The server replies in upper case.
    private func ask(_ client: String, _ name: String) throws -> String {
        switch client {
        case "CFMessagePort":
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(FoundationPortsTests.ask(remote, 5, "one-way", mode: nil).status == 0)
            return FoundationPortsTests.ask(remote, 6, "hello").text ?? "nil"
        case "RemoteMessagePort":
            let remote = try RemoteMessagePort(name: name)
            defer { remote.invalidate() }
            try remote.send(MachMessage(id: 5, text: "one-way"))
            return try remote.request(MachMessage(id: 6, text: "hello")).text
        case "SendRight":
            let right = try PortNameServer.shared.lookUp(name)
            try right.send(MachMessage(id: 5, text: "one-way"), within: .seconds(30))
            return try right.request(
                MachMessage(id: 6, text: "hello"), sendLimit: .seconds(30), replyLimit: .seconds(60)
            ).text
        case "portctl":
            let sending = try ChildProcess(try builtProduct("portctl"), ["send", name, "5", "one-way"])
            #expect(try sending.waitForExit() == ProcessResult(end: .exited(0)))
            let asking = try ChildProcess(try builtProduct("portctl"), ["request", name, "6", "hello"])
            let result = try asking.waitForExit()
            #expect(result.end == .exited(0), "\(result.errors)")
            return result.output
        default:
            let peer = try PortBench.peer(client, name)
            try peer.write("send 5 one-way\nrequest 6 hello\n")
            #expect(try peer.nextLine() == "0 -")
            let line = try peer.nextLine() ?? ""
            try peer.waitForExit()
            return String(line.dropFirst(2))
        }
    }

    private static let clients = [
        "CFMessagePort", "RemoteMessagePort", "SendRight", "portctl", "client", "native-client",
    ]

    @Test("a CFMessagePort on a run loop, or on a queue, serves each client", arguments: clients, ["loop", "queue"])
    func ofCFMessagePort(client: String, server: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let got = Recorder<String>("messages")
            let callback: CFMessagePortCallBack = { _, id, data, _ in
                got.append("\(id) \(text(data))")
                return reply(text(data).uppercased())
            }
            let thread = server == "loop" ? try PortThread(name, callback) : nil
            let port = thread?.port ?? CFMessagePortCreateLocal(nil, name as CFString, callback, nil, nil)
            let queue = DispatchQueue(label: "test", attributes: .concurrent)
            if thread == nil { CFMessagePortSetDispatchQueue(port, queue) }
            #expect(try ask(client, name) == "HELLO")
            // portctl sends from one process after the other, over a connection each: these have no order.
            let all = got.waitUntilCount(2)
            #expect((client == "portctl" ? all.sorted() : all) == ["5 one-way", "6 hello"])
            if let thread { try thread.end() } else { CFMessagePortInvalidate(port) }
            PortBench.finish(queue)
        }
    }

    @Test("CFMessagePort is a client of this package's own ports", arguments: ["LocalMessagePort", "MachPort", "peer"])
    func ofNative(server: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let got = Recorder<String>("messages")
            let peer = server == "peer" ? try PortBench.peer("native-serve", name) : nil
            let loop = Gate("the loop")
            let done = Gate("the client")
            let thread =
                peer != nil
                ? nil
                : runOnThread {
                    @Sendable func answer(_ message: MachMessage) -> [UInt8] {
                        got.append("\(message.id) \(message.text)")
                        return Array(message.text.uppercased().utf8)
                    }
                    let local =
                        server == "MachPort" ? nil : try LocalMessagePort(name: name) { _, message in answer(message) }
                    let port = server == "MachPort" ? MachPort() : nil
                    try local?.schedule(on: .current)
                    if let port {
                        port.setHandler { _, message in
                            let bytes = answer(message)
                            if message.expectsReply { try? message.reply(MachMessage(id: 0, bytes: bytes)) }
                        }
                        try PortNameServer.shared.register(port, name: name)
                        try port.schedule(on: .current)
                    }
                    loop.open()
                    while !done.isOpen { ThreadRunLoop.current.run(for: .milliseconds(5)) }
                    local?.invalidate()
                    port?.invalidate()
                }
            if thread != nil { loop.wait() }
            #expect(try ask("CFMessagePort", name) == "HELLO")
            if let peer {
                #expect(try peer.nextLine() == "got 5 one-way")
                try peer.waitForExit()
            } else {
                #expect(got.waitUntilCount(2) == ["5 one-way", "6 hello"])
            }
            done.open()
            try thread?.join()
        }
    }

    @Test(
        "portctl serves CFMessagePort's clients, in this process and another", arguments: ["CFMessagePort", "client"])
    func ofPortctl(client: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let server = try ChildProcess(
                try builtProduct("portctl"), ["serve", name, "--quiet", "--", "tr", "a-z", "A-Z"])
            let wait = try ChildProcess(try builtProduct("portctl"), ["wait", name])
            try wait.waitForExit()
            #expect(try ask(client, name) == "HELLO")
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(FoundationPortsTests.ask(remote, 0, nil, mode: nil).status == 0)
            #expect(try server.waitForExit().end == .exited(0))
        }
    }

    @Test(
        "an error reply, and a request that is dropped, give -4: CFMessagePort has no number for them",
        arguments: [["error"], ["drop"], ["error", "drop", "error"]])
    func errors(kinds: [String]) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = MachPort()
            try PortNameServer.shared.register(port, name: name)
            let thread = runOnThread {
                for kind in kinds {
                    let message = try port.receive(within: longTimeout)
                    if kind == "error" { try message?.replyError(7, "no") }
                }
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in kinds { #expect(FoundationPortsTests.ask(remote, 1) == Answer(kCFMessagePortTransportError)) }
            #expect(CFMessagePortIsValid(remote))
            try thread.join()
            port.invalidate()
        }
    }
}
