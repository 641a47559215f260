// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

@Suite("NSMachPort between processes (D-N2, D-N3, D-N5, D-N6)", .machPorts, .serialized) struct NSMachPortProcessTests {
    /// Starts the peer, and waits for its first line.
    private func start(_ mode: String, _ name: String) throws -> ChildProcess {
        let child = try ChildProcess(try builtProduct("mach-port-peer"), [mode, name])
        #expect(try child.nextLine() == "ready")
        return child
    }

    @Test("D-N2, D-N3: data and ports go to another process and back, and each port has one object on the way")
    func echo() async throws {
        let before = PortObjects.shared.counts
        let name = freshName("echo")
        let child = try start("echo", name)
        try await onNewThread {
            let (mine, extra, log) = (NSMachPort(), NSMachPort(), Recorder<String>())
            let server = try #require(NSMachBootstrapServer.shared.servicePort(withName: name) as? NSMachPort)
            #expect(NSMessagePortNameServer.shared.port(forName: name) === server)
            #expect(server is FoundationPorts.MessagePort)
            let handler = Handler { message in
                let components = message.components ?? []
                let parts = components.map { part -> String in
                    if let data = part as? Data { return "\(data.count) bytes" }
                    if part as AnyObject === extra { return "extra" }
                    return part as AnyObject === server ? "server" : "?"
                }
                let isRight = message.receivePort === mine && message.sendPort === server
                log.append("\(message.msgid) \(isRight) \(parts)")
            }
            mine.setDelegate(handler)
            RunLoop.current.add(mine, forMode: .default)
            #expect(server.send(3, [Data(count: 100_000), extra, NSData()], from: mine))
            runFoundationLoop(until: { log.count == 1 })
            #expect(log.elements == [#"3 true ["100000 bytes", "extra", "0 bytes", "server"]"#])
            // The server answers at a port that came in the message.
            #expect(server.send(98, [mine]))
            runFoundationLoop(until: { log.count == 2 })
            #expect(log.elements.last == #"98 true ["?", "server"]"#)
            #expect(server.send(99))
            for port in [mine, extra] { port.invalidate() }
            server.invalidate()
        }
        let result = try await child.waitForExit()
        #expect(result.output.contains("answered 3 true") && result.output.contains("ended"))
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        #expect(PortObjects.shared.counts == before)
    }

    @Test("D-N5: the death of the peer's process is noticed, posted on the main queue, and ends the port")
    func killed() async throws {
        let name = freshName("killed")
        let child = try start("hold", name)
        let port = try #require(NSMachBootstrapServer.shared.port(forName: name) as? NSMachPort)
        let posted = Recorder<Bool>()
        let observer = NotificationCenter.default.addObserver(
            forName: Port.didBecomeInvalidNotification, object: port, queue: nil
        ) { posted.append(($0.object as AnyObject) === port) }
        #expect(port.isValid && port.send(1))
        child.kill(SIGKILL)
        #expect(await posted.waitUntilCount(1) == [true])
        #expect(!port.isValid && !port.send(2) && posted.count == 1)
        #expect(NSMachBootstrapServer.shared.port(forName: name) == nil)
        NotificationCenter.default.removeObserver(observer)
        try await child.waitForExit()
    }

    @Test("D-N5: a send that waits for room ends with the death of the peer's process")
    func killedWhileWaiting() async throws {
        let name = freshName("waiting")
        let child = try start("hold", name)
        let port = try #require(NSMachBootstrapServer.shared.port(forName: name) as? NSMachPort)
        // The connection has room beside the queue's five.
        var sent = 0
        while port.send(sent, before: .distantPast), sent < 1_000 { sent += 1 }
        #expect((5..<1_000).contains(sent))
        // What is on its way to the peer's queue leaves room for more.
        let sender = runOnThread { while port.send(0, before: .distantFuture) {} }
        child.kill(SIGKILL)
        try await sender.join()
        #expect(!port.isValid)
        try await child.waitForExit()
    }

    @Test("D-N6: five messages wait at a port of another process that nobody serves, and none more is sent")
    func full() async throws {
        let name = freshName("full")
        let child = try start("hold", name)
        let port = try #require(NSMachBootstrapServer.shared.port(forName: name))
        var sent = 0
        while sent < 20, port.send(sent, before: .distantPast) { sent += 1 }
        #expect(sent == 5)
        #expect(!port.send(5, before: Date(timeIntervalSinceNow: 0.02)))
        #expect(port.isValid)
        port.invalidate()
        try await child.waitForExit()
    }

    @Test("D-N6: five messages wait whose bytes together are more than a port takes by default")
    func large() async throws {
        // `PeerLimits` says 64 MiB for all of a process.
        let (count, bytes) = (5, 13 << 20)
        let name = freshName("large")
        let child = try start("hold", name)
        let port = try #require(NSMachBootstrapServer.shared.port(forName: name))
        let data = try #require(NSMutableData(length: bytes))
        for number in 0..<count { #expect(port.send(number, [data], before: Date(timeIntervalSinceNow: 60))) }
        try child.write("serve \(count)\n")
        for number in 0..<count { #expect(try child.nextLine() == "got \(number) \(bytes)") }
        port.invalidate()
        try await child.waitForExit()
    }

    @Test("D-N2: ports that come in messages, and are not kept, leave no object")
    func noLeftovers() async throws {
        let before = PortObjects.shared.counts
        let name = freshName("leftovers")
        let child = try start("echo", name)
        try await onNewThread {
            let (mine, numbers) = (NSMachPort(), Numbers())
            mine.setDelegate(numbers)
            RunLoop.current.add(mine, forMode: .default)
            for round in 0..<20 {
                let server = try #require(NSMachBootstrapServer.shared.port(forName: name))
                let extra = NSMachPort()
                #expect(server.send(round, [extra], from: mine))
                runFoundationLoop(until: { numbers.all.count > round })
            }
            let server = try #require(NSMachBootstrapServer.shared.port(forName: name))
            #expect(server.send(99))
            mine.invalidate()
        }
        try await child.waitForExit()
        await withCheckedContinuation { done in DispatchQueue.main.async { done.resume() } }
        #expect(PortObjects.shared.counts == before)
    }
}
