// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import TestSupport
import Testing

@Suite("CFMessagePort: census", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortCensusTests {
    /// What the process has.
    private struct Census {
        let descriptors = openDescriptors()
        let threads = threadCount()

        /// Expects what was there before, but for the two ends of the wake channels of a busy connection's rings, and for
        /// threads of dispatch's pool, which come and go.
        func expect(asBefore before: Census, sourceLocation: SourceLocation = #_sourceLocation) {
            let new = descriptors.subtracting(before.descriptors)
            let sockets = new.filter { $0.contains("socket:[") }
            #expect(new.subtracting(sockets) == [] && sockets.count <= 2, sourceLocation: sourceLocation)
            #expect(before.descriptors.subtracting(descriptors) == [], sourceLocation: sourceLocation)
            #expect(threads <= before.threads + 2, sourceLocation: sourceLocation)
        }
    }

    @Test(
        "1,000 requests leave descriptors and threads as after the first 20",
        arguments: ["peer", "queue", "thread", "own"])
    func requests(server kind: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let command = ["peer": "serve", "queue": "queue"][kind]
            let peer = try command.map { try PortBench.peer($0, name) }
            let thread = try kind == "thread" ? PortThread(name) { _, _, _, _ in reply("0 0") } : nil
            let own = try kind == "own" ? serve(name) { _, _, _, _ in reply("0 0") } : nil
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in 0..<20 { #expect(ask(remote, 0) == Answer(0, "0 0")) }
            let before = Census()
            for _ in 0..<1_000 where ask(remote, 0) != Answer(0, "0 0") { Issue.record("a request failed") }
            Census().expect(asBefore: before)
            CFMessagePortInvalidate(own)
            try thread?.end()
            try peer?.waitForExit()
        }
    }

    @Test("requests that time out, fail, or are made by threads that end leave nothing behind")
    func failures() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("hold", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in 0..<5 { #expect(ask(remote, 1, receive: 0) == Answer(-2)) }
            let before = Census()
            for _ in 0..<20 {
                #expect(ask(remote, 1, send: 0) == Answer(-1))
                #expect(CFMessagePortCreateRemote(nil, "\(name).none" as CFString) == nil)
                try onNewThread { #expect(ask(remote, 1, send: 0) == Answer(-1)) }
            }
            Census().expect(asBefore: before)
            peer.kill()
            try peer.waitForExit()
        }
    }
}
