// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import TestSupport
import Testing

@Suite(
    "NSMachPort beside other ports, between processes (D-N7, D-N8, D-N9)",
    .leakCheck(settles: true, warmingUp: warmUpMachPorts), .serialized)
struct NSMachPortMixedProcessTests {
    /// Starts the peer of the tests of NSMachPort, and waits for its first line.
    private func start(_ mode: String, _ name: String) throws -> ChildProcess {
        let child = try ChildProcess(try builtProduct("mach-port-peer"), [mode, name])
        #expect(try child.nextLine() == "ready")
        return child
    }

    @Test(
        "D-N7: a live name of another process is refused, and is free when that process has ended",
        arguments: [0, 1, 2])
    func liveName(server index: Int) async throws {
        let servers = [NSPortNameServer(), NSMachBootstrapServer.shared, NSMessagePortNameServer.shared]
        let (server, name, port) = (servers[index], freshName("live"), NSMachPort())
        let child = try start("hold", name)
        #expect(!server.registerPort(port, name: name))
        let found = try #require(server.port(forName: name))
        #expect(found != port && found.isValid)
        // A process takes away its own ports' names only.
        #expect(!server.removePort(forName: name) && server.port(forName: name) === found)
        // The other process is refused the name of a port of this one.
        let own = freshName("own")
        #expect(server.registerPort(port, name: own))
        let refused = try ChildProcess(try builtProduct("mach-port-peer"), ["hold", own])
        #expect(try refused.nextLine() == "refused")
        try await refused.waitForExit()
        found.invalidate()
        try await child.waitForExit()
        #expect(server.registerPort(port, name: name) && server.port(forName: name) === port)
        port.invalidate()
    }

    @Test("D-N8: a request of another process's CFMessagePort arrives with its number and data, and is answered once")
    func requestFromProcess() async throws {
        let (name, log) = (freshName("request"), Recorder<String>())
        try await onNewThread {
            let port = NSMachPort()
            let handler = Handler { message in
                let text = (message.components?.first as? Data).map { String(decoding: $0, as: UTF8.self) } ?? "-"
                let sender = message.sendPort
                log.append("\(message.msgid) \(message.components?.count ?? 0) \(text) \(sender != nil)")
                guard let sender else { return }
                let reply = PortMessage(send: sender, receive: nil, components: [Data("answer".utf8)])
                log.append("\(reply.send(before: .distantPast)) \(reply.send(before: .distantPast)) \(sender.isValid)")
            }
            port.setDelegate(handler)
            RunLoop.current.add(port, forMode: .default)
            #expect(NSMachBootstrapServer.shared.registerPort(port, name: name))
            let client = try PortBench.peer("client", name)
            for words in ["request 8 question", "send 9 one-way", "request 10 again"] {
                try client.write(words + "\n")
                let line = runOnThread { try client.nextLine() }
                runLoop { line.hasEnded }
                let got = try line.join()
                #expect(got == (words.hasPrefix("send") ? "0 -" : "0 answer"))
            }
            runFoundationLoop(until: { log.count == 5 })
            try client.waitForExit()
            port.invalidate()
        }
        #expect(
            log.elements == [
                "8 1 question true", "true false false", "9 1 one-way false", "10 1 again true", "true false false",
            ])
    }

    @Test("D-N8: a request of CFMessagePort to another process's NSMachPort is answered by the delegate there")
    func requestToProcess() async throws {
        let name = freshName("answered")
        let child = try start("echo", name)
        try await onNewThread {
            defer { PortBench.dropReplyWaits() }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for id in 1...3 { #expect(ask(remote, Int32(id), "question") == Answer(0, "question")) }
            #expect(ask(remote, 99, mode: nil) == Answer(0))
            CFMessagePortInvalidate(remote)
        }
        let result = try await child.waitForExit()
        #expect(result.output == "ready\nanswered 1 true\nanswered 2 true\nanswered 3 true\nended\n")
    }

    @Test("D-N9: an NSMachPort sends to another process's CFMessagePort, and to a LocalMessagePort there")
    func toOtherKinds() async throws {
        for kind in ["serve", "native-serve"] {
            let name = freshName("kind")
            let child = try await offThePool { try PortBench.peer(kind, name) }
            let port = try #require(NSMachBootstrapServer.shared.port(forName: name))
            #expect(port.send(5, [Data("data".utf8)]))
            let line = try await offThePool { try child.nextLine() }
            #expect(line == (kind == "serve" ? "got data" : "got 5 data"))
            try await child.waitForExit()
            #expect(!port.isValid)
        }
    }

    @Test("D-N9: ports of all kinds, of three processes, are components of a message to another one and back")
    func mixedComponents() async throws {
        let names = (freshName("echo"), freshName("third"), freshName("native"))
        let (child, third) = (try start("echo", names.0), try start("hold", names.1))
        try await onNewThread {
            let (mine, other, log) = (NSMachPort(), FoundationPorts.MessagePort(), Recorder<[Bool]>())
            let native = MachPort()
            try PortNameServer.shared.register(native, name: names.2)
            let servers = NSMachBootstrapServer.shared
            let found = try [names.0, names.1, names.2].map {
                try #require(servers.port(forName: $0) as? NSMachPort)
            }
            let handler = Handler { message in
                let ports = (message.components ?? []).map { $0 as AnyObject }
                log.append(zip(ports, [mine, other, found[1], found[2], found[0]]).map { $0 === $1 })
                _ = (message.components?[3] as? Port)?.send(6)
            }
            mine.setDelegate(handler)
            RunLoop.current.add(mine, forMode: .default)
            #expect(found[0].send(1, [mine, other, found[1], found[2]], from: mine))
            runFoundationLoop(until: { log.count == 1 })
            #expect(log.elements == [[true, true, true, true, true]])
            #expect(try native.tryReceive()?.id == 6)
            #expect(found[0].send(99))
            for port in [mine, other] + found { port.invalidate() }
            native.invalidate()
        }
        try await child.waitForExit()
        try await third.waitForExit()
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
    }
}
