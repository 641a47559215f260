// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("which leg of a request failed", .contract) struct DeliveryContract {
    @Test("an error reply throws its code and text, an empty reply nothing", arguments: TestTransport.withName)
    func errorReply(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.refuse) { right, port in
                let empty = try right.ask(MachMessage(id: 0))
                #expect(empty.components.isEmpty)
                for text in ["", "no such file: Gr\u{fc}\u{df}e"] {
                    let error = portError { () throws(PortError) in _ = try right.ask(MachMessage(id: -5, text: text)) }
                    #expect(error?.code == .remoteError && error?.delivery == .read)
                    #expect(error?.remoteCode == -5 && error?.remoteText == text)
                    #expect(error.map { "\($0)" }?.contains("(its code -5, ") == true)
                }
                #expect(try port.lines(4) == Array(repeating: "noReplyRight", count: 4))
            }
        }
    }

    @Test("a handler cannot throw: its type says so")
    func handlerType() {
        #expect(MachPort.Handler.self == (@Sendable (MachPort, MachMessage) -> Void).self)
    }

    @Test("the text of an error reply is cut between characters", arguments: TestTransport.withName)
    func longText(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.refuseAtLength) { right, _ in
                let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
                #expect(error?.remoteText == String(repeating: "\u{20ac}", count: 1_365))
            }
        }
    }

    @Test("an error reply to a port is a message of its own kind", arguments: TestTransport.withName)
    func errorToPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let answers = try bench.port()
            try bench.serving(.fail) { right, _ in
                try right.send(carrying(answers.makeSendOnceRight()))
                let answer = try answers.next()
                #expect(answer.id == MachMessage.errorNotification)
                #expect(answer.remoteError?.remoteCode == 6 && answer.remoteError?.remoteText == "six")
                #expect(MachMessage(id: 1).remoteError == nil)
            }
        }
    }

    @Test("a port that ends before it reads a request says that it was not read", arguments: TestTransport.allCases)
    func unread(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) } }
            while try port.queueCount == 0 {
                try port.receiveFromSockets()
                sched_yield()
            }
            try port.invalidate()
            let error = try requester.join()
            #expect(error?.code == .peerDied && error?.delivery == .unread)
            #expect(error.map { "\($0)" }?.contains("nobody had read the message") == true)
        }
    }

    @Test("a port that ends while it handles a request says that it was read", arguments: TestTransport.withName)
    func readThenDied(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.end) { right, _ in
                let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
                #expect(error?.code == .peerDied && error?.delivery == .read)
            }
        }
    }

    @Test("a handler that lets a request go says that it was read", arguments: TestTransport.withName)
    func readThenDropped(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.silent) { right, _ in
                let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
                #expect(error?.code == .replyDropped && error?.delivery == .read)
            }
        }
    }

    @Test("whether a peer that is killed has read the request is unknown")
    func killed() async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/raw")
            let right = SendRight(try #require(try RightsTable.connect(to: listener.address)))
            let peer = Box<RawPeer>()
            peer.value.withLock { $0 = try? listener.accept() }
            let requester = runOnThread { portError { () throws(PortError) in _ = try right.ask(MachMessage()) } }
            _ = try peer.value.withLock { $0 }?.next()
            peer.value.withLock { $0 = nil }
            let error = try requester.join()
            #expect(error?.code == .peerDied && error?.delivery == .unknown)
        }
    }

    @Test("a request to a port that is gone was not sent", arguments: TestTransport.allCases)
    func notSent(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try port.invalidate()
            let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
            #expect(error?.code == .deadName && error?.delivery == .notSent)
        }
    }

    @Test("many threads ask over one right at once, and each gets its own answers", arguments: TestTransport.withName)
    func manyThreads(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.echo) { right, _ in
                let threads = (0..<8).map { thread in
                    runOnThread {
                        (0..<50).allSatisfy { index in
                            let request = MachMessage(id: Int32(index), bytes: [UInt8(thread), UInt8(index)])
                            guard let reply = try? right.ask(request) else { return false }
                            return reply.id == request.id && reply.bytes == request.bytes
                        }
                    }
                }
                for thread in threads {
                    let isRight = try thread.join()
                    #expect(isRight)
                }
            }
        }
    }
}
