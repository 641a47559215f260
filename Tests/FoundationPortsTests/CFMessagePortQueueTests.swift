// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import TestSupport
import Testing

@Suite("CFMessagePort: queues of messages", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortQueueTests {
    @Test(
        "D-S15: a port without a source takes exactly five messages of another process, and keeps them",
        arguments: [0, 0.2])
    func five(limit: CFTimeInterval) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("hold", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let statuses = (0..<7).map { ask(remote, 5, "\($0)", send: limit, mode: nil).status }
            #expect(statuses == [0, 0, 0, 0, 0, -1, -1])
            try peer.write("serve\n")
            #expect(try peer.nextLine() == "ready")
            for number in 0..<5 { #expect(try peer.nextLine() == "got \(number)") }
            #expect(ask(remote, 1, "x") == Answer(0, "x"))
            try peer.waitForExit()
        }
    }

    @Test("D-S15: five of several processes together; a port of the process, likewise")
    func several() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let got = Recorder<String>("messages")
            let port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, _, data, _ in
                    got.append(text(data))
                    return nil
                }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let peer = try PortBench.peer("client", name)
            for number in 0..<2 {
                try peer.write("send 1 peer \(number)\n")
                #expect(try peer.nextLine() == "0 -")
            }
            for number in 0..<3 { #expect(ask(remote, 1, "own \(number)", send: 0, mode: nil) == Answer(0)) }
            #expect(ask(remote, 1, "more", send: 0, mode: nil) == Answer(-1))
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            runLoop { got.count == 5 }
            #expect(Set(got.elements) == ["peer 0", "peer 1", "own 0", "own 1", "own 2"])
            CFMessagePortInvalidate(port)
            try peer.waitForExit()
        }
    }

    @Test("D-S15: five messages of 20 MiB wait, too")
    func large() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("hold", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let data = NSMutableData(length: 20 << 20)!
            for _ in 0..<5 { #expect(CFMessagePortSendRequest(remote, 8, data, 30, 0, nil, nil) == 0) }
            #expect(CFMessagePortSendRequest(remote, 8, data, 0.2, 0, nil, nil) == -1)
            try peer.write("serve\n")
            #expect(ask(remote, 1, "x") == Answer(0, "x"))
            peer.kill()
            try peer.waitForExit()
        }
    }
}
