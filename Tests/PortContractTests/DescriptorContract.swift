// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("descriptors in messages", .contract) struct DescriptorContract {
    @Test(
        "each descriptor arrives open on the same file, in order", arguments: TestTransport.withName,
        [0, 1, 64, 253, 254, 500])
    func usable(over transport: TestTransport, count: Int) async throws {
        try await onBench(over: transport) { bench in
            try raisingDescriptorLimit {
                let port = try bench.farPort()
                let right = try bench.right(to: port)
                let pipes = try (0..<count).map { _ in try TestPipe() }
                try right.send(MachMessage(components: pipes.map { .descriptor($0.writing) }))
                let received = try port.next().descriptors
                #expect(received.count == count)
                for (index, descriptor) in received.enumerated() {
                    try sysWriteAll(descriptor.rawValue, [UInt8(truncatingIfNeeded: index), 7])
                }
                for (index, pipe) in pipes.enumerated() {
                    #expect(try sysRead(pipe.reading.rawValue, capacity: 9) == [UInt8(truncatingIfNeeded: index), 7])
                }
            }
        }
    }

    @Test("descriptors, bytes and rights keep their order among each other", arguments: TestTransport.withName)
    func mixed(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let pipe = try TestPipe()
            let large = pattern(200_000)
            let (right, own) = (try bench.right(to: port), try port.makeSendRight())
            let sender = runOnThread {
                try right.send(
                    MachMessage(components: [
                        .descriptor(pipe.writing), .bytes(large), .right(own), .descriptor(pipe.reading), .bytes([]),
                    ]))
            }
            let message = try port.next()
            try sender.join()
            let kinds = message.components.map { component in
                switch component {
                case .bytes: "bytes"
                case .right: "right"
                case .descriptor: "descriptor"
                case .receiveRight: "receive right"
                case .memory: "memory"
                }
            }
            #expect(kinds == ["descriptor", "bytes", "right", "descriptor", "bytes"])
            #expect(message.bytes == large)
            try sysWriteAll(message.descriptors[0].rawValue, [42])
            #expect(try sysRead(message.descriptors[1].rawValue, capacity: 9) == [42])
        }
    }

    @Test(
        "501 descriptors are too many: the error says so, the message is intact, nothing is sent",
        arguments: TestTransport.connected)
    func tooMany(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try raisingDescriptorLimit {
                let port = try bench.farPort()
                let right = try bench.right(to: port)
                let pipe = try TestPipe()
                let message = MachMessage(components: Array(repeating: .descriptor(pipe.writing), count: 501))
                let error = portError { () throws(PortError) in try right.send(message) }
                #expect(error?.code == .tooManyDescriptors)
                #expect(error?.delivery == .notSent)
                #expect("\(try #require(error))".contains("(501 of at most 500 descriptors"))
                #expect(MessageLimits.descriptors == 500)
                #expect(message.descriptors.count == 501)
                try sysWriteAll(message.descriptors[500].rawValue, [1])
                #expect(try sysRead(pipe.reading.rawValue, capacity: 9) == [1])
                var fewer = message
                fewer.components.removeLast()
                try right.send(fewer)
                #expect(try port.next().descriptors.count == 500)
            }
        }
    }

    @Test(
        "a reply with more descriptors than a packet has comes whole, also behind others that find no room",
        arguments: TestTransport.connected)
    func reply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try raisingDescriptorLimit {
                try bench.serving(.echo) { right, _ in
                    let pipe = try TestPipe()
                    for count in [300, 500] {
                        var parts = Array(repeating: MachMessage.Component.descriptor(pipe.writing), count: count)
                        parts.append(.bytes(pattern(200_000)))
                        let reply = try right.ask(MachMessage(components: parts))
                        #expect(reply.descriptors.count == count && reply.bytes == pattern(200_000))
                        try sysWriteAll(reply.descriptors[count - 1].rawValue, [7])
                        #expect(try sysRead(pipe.reading.rawValue, capacity: 9) == [7])
                    }
                }
            }
        }
    }

    @Test("a message of two packets arrives not at all when one of them loses its descriptors, and none stays open")
    func lostInPart() async throws {
        try await onBench(over: .socket) { bench in
            let (port, pipe) = (try bench.port(), try TestPipe())
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            _ = try port.next()
            let parts = [MachMessage.Component](repeating: .descriptor(pipe.writing), count: 300)
            let encoded = try OutgoingMessage(MachMessage(id: 2, components: parts))
            var head = PacketHeader(
                kind: .message, descriptorCount: 300, messageID: 2, componentCount: 300,
                totalLength: UInt64(encoded.size))
            let rest = PacketHeader(kind: .continuation, descriptorCount: 47)
            // A message may have 200 here; no descriptor is left.
            for (limits, asks) in [((800, 2_000), 1), ((2_000, 64), 2), ((64, 64), 3)] as [((Int, Int), UInt64)] {
                head.asks = asks
                try expectNoNewDescriptors {
                    try peer.send(head, Array(encoded.bytes[..<8]), Array(encoded.descriptors[..<253]))
                    withDescriptorLimit(limits.0) { _ = port.localPort.receiveFromSockets() }
                    try peer.send(rest, Array(encoded.bytes[8...]), Array(encoded.descriptors[253...]))
                    withDescriptorLimit(limits.1) { _ = port.localPort.receiveFromSockets() }
                    let answer = try peer.next()
                    #expect(answer?.kind == .replyDropped && answer?.answers == asks)
                    #expect(answer?.messageID == Int32(PortError.Code.descriptorsLost.rawValue))
                    #expect(port.queueCount == 0)
                }
            }
            try peer.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
        }
    }

    @Test(
        "descriptors that are declined are counted: a head with another number ends the connection",
        arguments: [239, 241])
    func falseCount(_ count: UInt16) async throws {
        try await onBench(over: .socket) { bench in
            let (port, pipe) = (try bench.port(), try TestPipe())
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            _ = try port.next()
            let head = PacketHeader(
                kind: .message, descriptorCount: count, componentCount: 240, totalLength: 1_920)
            try peer.send(head, [UInt8](repeating: 0, count: 8), Array(repeating: pipe.writing, count: 240))
            // A message may have 200 here, and the process has room for all of them.
            withDescriptorLimit(800) { _ = port.localPort.receiveFromSockets() }
            let answer = try peer.next()
            #expect(answer?.kind == .refused)
            #expect(answer?.messageID == Int32(PortError.Code.malformedPacket.rawValue))
        }
    }

    @Test("within a process descriptors have no limit in number")
    func manyWithinProcess() async throws {
        try await onBench(over: .memory) { bench in
            let port = try bench.port()
            let pipe = try TestPipe()
            try bench.right(to: port)
                .send(MachMessage(components: Array(repeating: .descriptor(pipe.writing), count: 1000)))
            #expect(try port.next().descriptors.count == 1000)
        }
    }

    @Test(
        "a delivered descriptor is closed once, when the last copy of its message goes",
        arguments: TestTransport.inProcess)
    func delivered(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            // Connected and accepted, and the port asked for room, so that the count below is of the message alone.
            for _ in 0..<2 {
                try right.send(MachMessage())
                _ = try port.next()
            }
            try expectNoNewDescriptors {
                let pipe = try TestPipe()
                try right.send(MachMessage(components: [.descriptor(pipe.writing)]))
                let first = try port.next()
                let copy = first
                try sysWriteAll(copy.descriptors[0].rawValue, [1])
            }
        }
    }

    @Test("a message that is released leaves no descriptor where it was received", arguments: TestTransport.withName)
    func letGo(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            // With the second message the right's end has rings, too.
            for _ in 0..<2 {
                try right.send(MachMessage())
                _ = try port.next()
            }
            waitUntilDescriptorsAreClosed()
            waitForIOThread()
            let before = try bench.farDescriptorCount()
            do {
                let pipe = try TestPipe()
                try right.send(MachMessage(components: [.descriptor(pipe.writing), .descriptor(pipe.writing)]))
                let message = try port.next()
                #expect(try bench.farDescriptorCount() > before)
                try sysWriteAll(message.descriptors[1].rawValue, [1])
            }
            // What came from a peer is closed by a thread of its own.
            let deadline = Watchdog.deadline
            var count = try bench.farDescriptorCount()
            while count > before, .now < deadline { count = try bench.farDescriptorCount() }
            // The far side may have closed the connection of a question for room since.
            #expect(count <= before)
        }
    }

    @Test(
        "the end of a message that is never received closes its descriptors", arguments: TestTransport.allCases,
        Loss.allCases)
    func lost(over transport: TestTransport, loss: Loss) async throws {
        try await onBench(over: transport) { bench in
            let reading = try {
                let pipe = try TestPipe()
                try loss.lose(MachMessage(components: [.descriptor(pipe.writing)]), on: bench)
                return pipe.reading
            }()
            // The pipe's reading end is at its end: no process holds the writing end any more.
            let seen = try sysPoll(reading.rawValue, .readable, until: Watchdog.deadline)
            #expect(seen == .hangUp)
        }
    }

    @Test(
        "sending and losing messages leaves exactly the descriptors that were there before",
        arguments: TestTransport.inProcess)
    func exactCounts(over transport: TestTransport) async throws {
        let socket = transport != .memory
        await #expect(processExitsWith: .success) { [socket = socket as Bool] in
            try warmUpIOThread()
            try await expectNoNewDescriptors {
                try await onBench(over: socket ? .socket : .memory) { bench in
                    for loss in Loss.allCases {
                        let pipe = try TestPipe()
                        try loss.lose(
                            MachMessage(components: [.descriptor(pipe.writing), .descriptor(pipe.reading)]), on: bench)
                    }
                }
            }
        }
    }
}

/// The ways in which a message is lost.
enum Loss: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case droppedByHandler, noHandler, bounced, portGone, refusedByFullQueue, refusedByDeadPort, replyToNobody

    var testDescription: String { rawValue }

    func lose(_ message: MachMessage, on bench: Bench) throws {
        switch self {
        case .droppedByHandler: try serve(message, on: bench, .silent)
        case .noHandler: try serve(message, on: bench, .none)
        case .bounced:
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try right.send(message)
            try right.send(message)
            try port.invalidate()
        case .portGone:
            let right = try bench.right(to: bench.farPort())
            #expect(portError { () throws(PortError) in try right.send(message) }?.code == .deadName)
        case .refusedByFullQueue:
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            _ = try right.fill(bytes: 1000)
            #expect(try !right.trySend(message))
        case .refusedByDeadPort:
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try port.invalidate()
            #expect(portError { () throws(PortError) in _ = try right.ask(message) }?.code == .deadName)
        case .replyToNobody:
            let port = try bench.farPort()
            let asked = try bench.right(to: port)
            _ = portError { () throws(PortError) in _ = try asked.request(MachMessage(), replyLimit: .zero) }
            let late = try port.next()
            // In memory the replier gets an error when no thread waits; over a socket the other end drops the reply.
            _ = portError { () throws(PortError) in try late.reply(message) }
            _ = portError { () throws(PortError) in _ = try asked.request(MachMessage(), replyLimit: .zero) }
        }
    }

    private func serve(_ message: MachMessage, on bench: Bench, _ service: Service) throws {
        try bench.serving(service) { right, _ in
            // A request, so that the loss is reported to the test.
            #expect(portError { () throws(PortError) in _ = try right.ask(message) }?.code == .replyDropped)
        }
    }
}

/// Raises the soft limit of descriptors as far as a test of many needs it.
func raisingDescriptorLimit(_ body: () throws -> Void) throws {
    try withDescriptorLimit(max(2048, sysDescriptorLimit()), body)
}
