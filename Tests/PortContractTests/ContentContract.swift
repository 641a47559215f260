// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("messages' contents", .contract) struct ContentContract {
    private static let mebibyte = 1 << 20

    @Test(
        "bodies of every size arrive as they were, in place",
        arguments: TestTransport.withName, [0, 1, 7, 4_095, 65_487, 65_489, 131_071, 1 << 20, rounds(50 << 20)])
    func sizes(over transport: TestTransport, size: Int) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.measure) { right, _ in
                let message = MachMessage(byteCapacity: size) { span in
                    for index in 0..<size { span.append(UInt8(truncatingIfNeeded: index &* 7 &+ 3)) }
                }
                let reply = try right.ask(message)
                #expect(reply.id == Int32(size))
                let last = UInt8(truncatingIfNeeded: (size - 1) &* 7 &+ 3)
                #expect(reply.bytes == (size == 0 ? [0, 0] : [3, last]))
            }
        }
    }

    @Test(
        "a component list above its limit is refused; the error has size and limit, and the message is intact",
        arguments: TestTransport.connected)
    func tooManyComponents(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let count = MessageLimits.components + 1
            let right = try bench.right(to: port)
            var message = MachMessage(id: 9, components: .init(repeating: .bytes([]), count: count))
            let error = portError { () throws(PortError) in try right.send(message) }
            #expect(error?.code == .messageTooLarge && error?.delivery == .notSent)
            #expect("\(try #require(error))".contains("(\(count) of at most \(count - 1) components"))
            #expect(message.id == 9 && message.components.count == count)
            message.components = [.bytes([1])]
            try right.send(message)
            #expect(try port.next().bytes == [1])
        }
    }

    @Test("a right sent three times in one message is three equal rights", arguments: TestTransport.withName)
    func sameRightThrice(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.farPort(), try bench.port())
            let (right, carried) = (try bench.right(to: port), try bench.right(to: other))
            try right.send(MachMessage(components: [.right(carried), .right(carried), .right(carried)]))
            let message = try port.next()
            let rights = message.rights
            #expect(rights.count == 3)
            #expect(Set(rights).count == 1)
            for id in rights.indices { try message.send(MachMessage(id: Int32(id)), over: id) }
            for id in Int32(0)..<3 { #expect(try other.next().id == id) }
        }
    }

    @Test("a right to a port that died on the way is a dead name", arguments: TestTransport.allCases)
    func diedOnTheWay(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.farPort(), try bench.port())
            let (right, carried) = (try bench.right(to: port), try bench.right(to: other))
            try right.send(MachMessage(components: [.right(carried), .bytes([1])]))
            other.invalidate()
            let message = try port.next()
            #expect(message.bytes == [1])
            let dead = try #require(message.rights.first)
            #expect(dead.isDead)
            let error = portError { () throws(PortError) in try message.send(MachMessage(), over: 0) }
            #expect(error?.code == .deadName && error?.delivery == .notSent)
        }
    }

    @Test("values go as values, and come back as values", arguments: TestTransport.withName)
    func values(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.describe) { right, port in
                let reply = try right.request([1, -2, 3] as [Int32], as: [String?].self)
                #expect(reply == ["1", "-2", "3", nil])
                let error = portError { () throws(PortError) in
                    _ = try right.request([1] as [Int32], as: UInt64.self)
                }
                #expect(error?.code == .malformedContent)
                withExtendedLifetime(port) {}
            }
        }
    }

    @Test("messages, ports and rights describe themselves", arguments: TestTransport.inProcess)
    func descriptions(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 3)
            let right = try bench.right(to: port)
            let message = MachMessage(id: 7, components: [.bytes([1]), .bytes([]), .right(right)], replyPort: right)
            #expect("\(message)" == "message 7 [1 byte, 0 bytes, \(right)], reply port: \(right)")
            try right.send(message)
            #expect(try port.next().description.contains("message 7 [1 byte, 0 bytes, right to port"))
            #expect("\(port)".hasSuffix(" (0 of 3 messages)"))
            port.invalidate()
            #expect("\(port)".hasSuffix(" (invalid)"))
            #expect("\(right)".hasSuffix(" (dead)"))
            #expect("\(MachMessage(components: .init(repeating: .bytes([]), count: 10)))".hasSuffix("0 bytes, 2 more]"))
        }
    }
}
