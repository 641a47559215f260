// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import Synchronization
import TestSupport
import Testing

@Suite("NSMachPort beside CFMessagePort and this package's ports (D-N8, D-N9)", .machPorts, .serialized)
struct NSMachPortMixedTests {
    /// A request of CFMessagePort to the port with a name: its status, and the reply's text.
    private static func request(_ name: String, _ id: Int32, limit: CFTimeInterval) -> (Int32, String?) {
        let remote = CFMessagePortCreateRemote(nil, name as CFString)
        guard remote != nil else { return (Int32.min, nil) }
        var reply: Unmanaged<CFData>?
        let status = CFMessagePortSendRequest(
            remote, id, Data("question".utf8) as CFData, 60, limit, CFRunLoopMode.defaultMode.rawValue, &reply)
        CFMessagePortInvalidate(remote)
        return (status, reply.map { String(decoding: $0.takeRetainedValue() as Data, as: UTF8.self) })
    }

    /// Serves a port with a name on a new thread, while another thread does something.
    private func serving(
        _ name: String, _ handler: @escaping @Sendable (PortMessage) -> Void,
        while body: @escaping @Sendable () throws -> Void
    ) async throws {
        let (ready, done) = (Gate("the server"), Counter("the client's end"))
        let server = runOnThread(name: "server") {
            let (port, delegate) = (NSMachPort(), Handler(handler))
            port.setDelegate(delegate)
            RunLoop.current.add(port, forMode: .default)
            #expect(NSPortNameServer().registerPort(port, name: name))
            ready.open()
            // The last message comes when the client is done.
            runFoundationLoop(until: { done.value > 0 })
            port.invalidate()
        }
        let client = runOnThread(name: "client") {
            ready.wait()
            let result = Result { try body() }
            done.increment()
            NSPortNameServer().port(forName: name)?.send(0x7fff)
            try result.get()
        }
        try await client.join()
        try await server.join()
        PortBench.dropReplyWaits()
    }

    @Test("D-N8: a request of CFMessagePort arrives with its number and its data, and its sendPort answers once")
    func request() async throws {
        let log = Recorder<String>()
        let name = freshName("request")
        let before = PortObjects.shared.counts
        try await serving(name) { message in
            guard message.msgid == 8, let port = message.sendPort else { return }
            let data = message.components?.first as? Data
            let text = String(decoding: data ?? Data(), as: UTF8.self)
            log.append("\(message.components?.count ?? 0) \(text) \(port.isValid)")
            let counter = InvalidityCounter(port)
            // What cannot be sent leaves the reply to be sent.
            log.append("\(port.send(1, ["text"])) \(port.isValid)")
            let reply = PortMessage(send: port, receive: nil, components: [Data("answer".utf8)])
            log.append("\(reply.send(before: .distantPast)) \(port.isValid) \(counter.value)")
            log.append("\(reply.send(before: .distantPast)) \(port.send(2)) \(counter.value)")
            // A right to one reply goes into no other message.
            let mine = message.receivePort
            log.append("\(mine?.send(3, [port]) == true) \(mine?.send(4, from: port) == true)")
        } while: {
            #expect(Self.request(name, 8, limit: 60) == (kCFMessagePortSuccess, "answer"))
        }
        #expect(
            log.elements == ["1 question true", "false true", "true false 1", "false false 1", "false false"])
        #expect(PortObjects.shared.counts == before)
    }

    @Test("D-N8: one of two threads answers, and a late answer is refused or dropped")
    func answerFromThreads() async throws {
        let results = Recorder<Bool>()
        let name = freshName("two-answers")
        try await serving(name) { message in
            guard message.msgid == 8, let port = message.sendPort as? NSMachPort else { return }
            let threads = (0..<4).map { _ in
                runOnThread {
                    port.send(before: .distantPast, msgid: 8, components: [NSData()], from: nil, reserved: 0)
                }
            }
            for thread in threads { if let sent = try? thread.join() { results.append(sent) } }
        } while: {
            for _ in 0..<20 { #expect(Self.request(name, 8, limit: 60) == (kCFMessagePortSuccess, "")) }
        }
        #expect(results.count == 80 && results.elements.count { $0 } == 20)
    }

    @Test(
        "D-N8: an answer that is not sent ends the request: with the message, and with invalidate",
        arguments: [true, false])
    func unanswered(byInvalidation: Bool) async throws {
        let name = freshName("unanswered")
        try await serving(name) { message in
            if message.msgid == 8, byInvalidation { message.sendPort?.invalidate() }
        } while: {
            let (status, reply) = Self.request(name, 8, limit: 60)
            #expect(status == kCFMessagePortTransportError && reply == nil)
        }
    }

    @Test("D-N8: a request without a reply mode arrives without a sendPort, with one component, also without data")
    func oneWay() async throws {
        let log = Recorder<String>()
        let name = freshName("one-way")
        try await serving(name) { message in
            if message.msgid == 9 { log.append("\(message.sendPort == nil) \(message.components?.count ?? 0)") }
        } while: {
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(CFMessagePortSendRequest(remote, 9, nil, 60, 0, nil, nil) == kCFMessagePortSuccess)
            log.waitUntilCount(1)
            CFMessagePortInvalidate(remote)
        }
        #expect(log.elements == ["true 1"])
    }

    @Test("D-N9: an NSMachPort sends to a CFMessagePort, whose callback gets the number and the data")
    func toCFMessagePort() async throws {
        try await onNewThread {
            let (log, name) = (Recorder<String>(), freshName("to-cf"))
            let local = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, id, data, _ in
                    log.append("\(id) \(data?.length ?? -1)")
                    return nil
                }, nil, nil)
            CFRunLoopAddSource(
                CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, local, 0), .defaultMode)
            let mine = NSMachPort()
            let port = try #require(NSMessagePortNameServer.shared.port(forName: name))
            #expect(port.isValid && port.send(5, [Data(count: 7)], from: mine))
            runFoundationLoop(until: { log.count == 1 })
            #expect(log.elements == ["5 7"])
            CFMessagePortInvalidate(local)
            #expect(!port.isValid)
            mine.invalidate()
        }
    }

    @Test("D-N9: NSMachPort, MessagePort and a port of this package are components of one message, in any order")
    func mixedComponents() async throws {
        try await onNewThread {
            let (port, other, count) = (NSMachPort(), FoundationPorts.MessagePort(), Recorder<Int>())
            let own = MachPort()
            try PortNameServer.shared.register(own, name: freshName("own"))
            let found = try #require(NSPortNameServer().port(forName: freshName("own")))
            let handler = Handler { message in
                count.append((message.components ?? []).count { $0 is NSMachPort })
                (message.components?[2] as? Port)?.send(6)
            }
            port.setDelegate(handler)
            RunLoop.current.add(port, forMode: .default)
            #expect(port.send(1, [other, Data(), found, port], from: other))
            runFoundationLoop(until: { count.count == 1 })
            #expect(count.elements == [3])
            #expect(try own.tryReceive()?.id == 6)
            for port in [port, other] { port.invalidate() }
            found.invalidate()
            own.invalidate()
        }
    }
}
