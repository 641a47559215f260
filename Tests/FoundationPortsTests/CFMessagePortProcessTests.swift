// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import TestSupport
import Testing

@Suite("CFMessagePort: between processes", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortProcessTests {
    /// A client in another process has sent messages with the numbers 0 to 4, which are still in the sockets.
    private func sendFive(to name: String) throws {
        let client = try PortBench.peer("client", name)
        for id in 0..<5 {
            try client.write("send \(id) x\n")
            let line = try client.nextLine()
            #expect(line == "0 -")
        }
        try client.waitForExit()
    }

    @Test(
        "D-S14: a loop that runs inside of a callout serves the next messages of another process",
        arguments: ["mode", "request"])
    func nested(how: String) async throws {
        try await onLoopThread {
            let (name, other) = (PortBench.name(), PortBench.name())
            let order = Recorder<Int32>("messages")
            let inner = try PortBench.peer("serve", other)
            let remote = CFMessagePortCreateRemote(nil, other as CFString)
            let port = try serve(name) { _, id, _, _ in
                order.append(id)
                if id == 0 {
                    if how == "mode" {
                        runLoop { order.count == 5 }
                    } else {
                        while order.count < 5 { #expect(ask(remote, 1, "inner") == Answer(0, "inner")) }
                    }
                    order.append(-1)
                }
                return nil
            }
            try sendFive(to: name)
            runLoop { order.count == 6 }
            #expect(order.elements == [0, 1, 2, 3, 4, -1])
            CFMessagePortInvalidate(port)
            try inner.waitForExit()
        }
    }

    @Test("D-S14: one pass of a loop handles one message of another process")
    func onePerPass() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let order = Recorder<Int32>("messages")
            let port = try serve(name) { _, id, _, _ in
                order.append(id)
                return nil
            }
            try sendFive(to: name)
            // A connection's beginning or end may be an event, too, for no message.
            while order.count < 5 {
                let before = order.count
                #expect(CFRunLoopRunInMode(.defaultMode, noLimit, true) == .handledSource)
                #expect(order.count <= before + 1)
            }
            _ = CFRunLoopRunInMode(.defaultMode, 0, true)
            #expect(order.elements == [0, 1, 2, 3, 4])
            CFMessagePortInvalidate(port)
        }
    }

    /// What a client in another process gets from the port with a name, which this thread's loop serves.
    private func answer(to name: String) throws -> String? {
        let client = try ChildProcess(try builtProduct("cf-port-peer"), ["client", name])
        if try client.nextLine() != "ready" {
            try client.waitForExit()
            return nil
        }
        try client.write("request 1 x\n")
        let line = runOnThread { try client.nextLine() }
        runLoop { line.hasEnded }
        try client.waitForExit()
        return try line.join()
    }

    @Test("D-S1: another process finds a port by its whole name and by the name as it was cut", arguments: ["x", "é"])
    func cutName(ending: String) async throws {
        try await onLoopThread {
            let start = PortBench.name()
            let cut = start + String(repeating: "x", count: 127 - start.utf8.count) + (ending == "x" ? "x" : "")
            let whole = ending == "x" ? cut + "x" : cut + ending
            #expect(whole.utf8.count == 129)
            let port = try serve(whole) { port, _, _, _ in reply(CFMessagePortGetName(port) as String? ?? "-") }
            for name in [whole, cut] { #expect(try answer(to: name) == "0 \(cut)") }
            #expect(try answer(to: String(cut.dropLast())) == nil)
            CFMessagePortInvalidate(port)

            let peer = try PortBench.peer("serve", whole)
            let remote = CFMessagePortCreateRemote(nil, whole as CFString)
            #expect(CFMessagePortGetName(remote) as String? == cut)
            #expect(CFMessagePortCreateRemote(nil, cut as CFString) === remote && ask(remote, 1, "x") == Answer(0, "x"))
            try peer.waitForExit()
        }
    }

    @Test("D-S5: another process finds a port by its other name only, and a client of the old name still reaches it")
    func changedName() async throws {
        try await onLoopThread {
            let (name, other) = (PortBench.name(), PortBench.name())
            let port = try serve(name) { port, _, _, _ in reply(CFMessagePortGetName(port) as String? ?? "-") }
            let client = try PortBench.peer("client", name)
            #expect(CFMessagePortSetName(port, other as CFString))
            #expect(try answer(to: name) == nil)
            #expect(try answer(to: other) == "0 \(other)")
            try client.write("request 1 x\n")
            let line = runOnThread { try client.nextLine() }
            runLoop { line.hasEnded }
            let got = try line.join()
            #expect(got == "0 \(other)")
            // The old name is another process's now.
            let heir = try PortBench.peer("serve", name)
            #expect(!CFMessagePortSetName(port, name as CFString))
            try heir.waitForExit()
            #expect(CFMessagePortSetName(port, name as CFString))
            #expect(try answer(to: name) == "0 \(name)")
            try client.waitForExit()
            CFMessagePortInvalidate(port)
        }
    }
}
