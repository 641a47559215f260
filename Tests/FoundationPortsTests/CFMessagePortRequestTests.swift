// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

@Suite("CFMessagePort: requests", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortRequestTests {
    @Test("D-S11: a message goes to a local port's object, too, and -3 comes before any sending")
    func localObject() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = try serve(name) { _, id, data, _ in reply("\(id) \(text(data))") }
            #expect(ask(port, 5, "x") == Answer(0, "5 x"))
            CFMessagePortInvalidate(port)
            #expect(ask(port, 5, "x") == Answer(-3))
            #expect(ask(port, 5, "x", mode: nil) == Answer(-3))
        }
    }

    @Test(
        "D-S11, D-S15: at a full port these send limits give -1, and the loop does not run meanwhile",
        arguments: [0, 0.0009, -1, -.infinity, .nan, 0.02, 0.2])
    func fullPort(limit: CFTimeInterval) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in Issue.record("the loop ran") }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, .defaultMode)
            // With room each of them sends.
            for _ in 0..<5 { #expect(ask(remote, 1, send: limit, mode: nil) == Answer(0)) }
            #expect(ask(remote, 1, send: limit, mode: nil) == Answer(-1))
            #expect(ask(remote, 1, send: limit) == Answer(-1))
            #expect(ask(port, 1, send: limit, mode: nil) == Answer(-1))
            CFRunLoopTimerInvalidate(timer)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S11: ten days and more wait until there is room", arguments: [864_000, 1e9, .infinity])
    func noLimit(limit: CFTimeInterval) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in 0..<5 { #expect(ask(remote, 1, send: limit, mode: nil) == Answer(0)) }
            let sender = runOnThread { ask(remote, 1, send: limit, mode: nil) }
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            runLoop { sender.hasEnded }
            let sent = try sender.join()
            #expect(sent == Answer(0))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S12: without a reply mode neither the receive limit nor the out pointer is used")
    func oneWay() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let garbage = UnsafeMutablePointer<Unmanaged<CFData>?>(bitPattern: 8)!
            #expect(CFMessagePortSendRequest(remote, 1, nil, 0, .nan, nil, garbage) == 0)
            let page = UnsafeMutablePointer<UInt>.allocate(capacity: 1)
            defer { page.deallocate() }
            page.pointee = 0xABCD
            page.withMemoryRebound(to: Unmanaged<CFData>?.self, capacity: 1) {
                _ = CFMessagePortSendRequest(remote, 1, nil, 0, 1_000, nil, $0)
            }
            #expect(page.pointee == 0xABCD)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S12: no data, and empty data, arrive as empty data; a nil reply is empty data", arguments: [false, true])
    func empty(isPeer: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = isPeer ? try PortBench.peer("serve", name) : nil
            let port =
                isPeer
                ? nil : try serve(name) { _, id, data, _ in id == 2 ? nil : reply("\(id) \(data.map(\.length) ?? -1)") }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(ask(remote, 99, nil) == Answer(0, "99 0"))
            #expect(ask(remote, 99, "") == Answer(0, "99 0"))
            #expect(ask(remote, 2, nil) == Answer(0, ""))
            // A reply that nobody wants is waited for, and dropped.
            let mode = CFRunLoopMode.defaultMode.rawValue
            #expect(CFMessagePortSendRequest(remote, 99, nil, 1, 60, mode, nil) == 0)
            CFMessagePortInvalidate(port)
            try peer?.waitForExit()
        }
    }

    @Test("D-S12: a port that has no callback replies with empty data")
    func noCallback() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1, "x") == Answer(0, ""))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S13: other sources and timers of the mode run during a wait; those of other modes do not")
    func modes() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let server = try PortBench.peer("serve", name)
            let own = PortBench.name()
            let calls = Recorder<String>("calls")
            let port = try serve(own) { _, _, _, _ in
                calls.append("source")
                return nil
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for mode in [CFRunLoopMode("private" as CFString), .defaultMode!] {
                let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in calls.append("timer") }
                CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, .defaultMode)
                #expect(ask(port, 1, mode: nil) == Answer(0))
                let releaser = runOnThread {
                    let line = try server.nextLine()
                    #expect(line == "holding x")
                    if mode == .defaultMode { calls.waitUntilCount(2) }
                    try server.write("go\n")
                    _ = try server.nextLine()
                }
                #expect(ask(remote, 3, "x", mode: mode) == Answer(0, "x"))
                try releaser.join()
                #expect(calls.count == (mode == .defaultMode ? 2 : 0))
                CFRunLoopTimerInvalidate(timer)
                if mode != .defaultMode {
                    runLoop { calls.count >= 1 }
                    _ = calls.takeAll()
                }
            }
            CFMessagePortInvalidate(port)
            try server.waitForExit()
        }
    }

    @Test(
        "D-S13: a receive limit gives -2, and the late reply meets no later request",
        arguments: [0, -1, .nan, 0.02])
    func late(limit: CFTimeInterval) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let server = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for round in 0..<5 {
                #expect(ask(remote, 3, "late", receive: limit) == Answer(-2))
                let holding = try server.nextLine()
                #expect(holding == "holding late")
                try server.write("go\n")
                #expect(ask(remote, 1, "\(round)") == Answer(0, "\(round)"))
                let done = try server.nextLine()
                #expect(done == "done go")
            }
            try server.waitForExit()
        }
    }

    @Test("D-S13: a stop of the loop during a wait is lost, and the reply comes")
    func stopped() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let server = try PortBench.peer("serve", name)
            let loop = CFRunLoopGetCurrent()
            let releaser = runOnThread {
                _ = try server.nextLine()
                CFRunLoopStop(loop)
                CFRunLoopWakeUp(loop)
                try server.write("go\n")
            }
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 3, "x") == Answer(0, "x"))
            try releaser.join()
            try server.waitForExit()
        }
    }

    @Test("D-S13: the common modes, in which no loop runs, give -2")
    func commonModes() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = try serve(name) { _, _, _, _ in nil }
            #expect(ask(port, 1, receive: 0.02, mode: .commonModes) == Answer(-2))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S13: two ports whose callbacks ask each other answer to a depth of five, on one thread and on two")
    func mutual() async throws {
        try await onLoopThread {
            let names = (PortBench.name("a"), PortBench.name("b"))
            /// Asks the other port, one less deep.
            @Sendable func answer(_ id: Int32, _ own: String, _ other: String) -> Unmanaged<CFData>? {
                if id == 0 { return reply(own) }
                let remote = CFMessagePortCreateRemote(nil, other as CFString)
                return reply("\(own) \(ask(remote, id - 1).text ?? "?")")
            }
            let a = try serve(names.0) { _, id, _, _ in answer(id, names.0, names.1) }
            let expected = (0...5).map { $0 % 2 == 0 ? names.1 : names.0 }.joined(separator: " ")
            let b = try serve(names.1) { _, id, _, _ in answer(id, names.1, names.0) }
            #expect(ask(CFMessagePortCreateRemote(nil, names.1 as CFString), 5).text == expected)
            CFMessagePortInvalidate(b)
            let thread = try PortThread(names.1) { _, id, _, _ in answer(id, names.1, names.0) }
            #expect(ask(CFMessagePortCreateRemote(nil, names.1 as CFString), 5).text == expected)
            try thread.end()
            CFMessagePortInvalidate(a)
        }
    }

    @Test("D-S13: two processes whose callbacks ask each other answer to a depth of five")
    func mutualProcesses() async throws {
        try await onLoopThread {
            let names = (PortBench.name("a"), PortBench.name("b"))
            let peer = try PortBench.peer("serve", names.1)
            let remote = CFMessagePortCreateRemote(nil, names.1 as CFString)
            let port = try serve(names.0) { _, _, data, _ in
                let depth = Int(text(data).prefix { $0 != " " }) ?? 0
                if depth == 0 { return reply("0") }
                return reply("\(depth) \(ask(remote, 6, "\(depth - 1) \(names.0)").text ?? "?")")
            }
            #expect(ask(remote, 6, "5 \(names.0)") == Answer(0, "5 4 3 2 1 0"))
            CFMessagePortInvalidate(port)
            try peer.waitForExit()
        }
    }

    @Test("D-S13: each of many threads that use one remote object gets its own reply", arguments: [false, true])
    func threads(isPeer: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = isPeer ? try PortBench.peer("serve", name) : nil
            let server = isPeer ? nil : try PortThread(name) { _, _, data, _ in data.map { .passRetained($0) } }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let threads = (0..<6).map { number in
                runOnThread {
                    for round in 0..<rounds(100) {
                        #expect(ask(remote, 1, "\(number) \(round)") == Answer(0, "\(number) \(round)"))
                    }
                }
            }
            for thread in threads { try thread.join() }
            try server?.end()
            try peer?.waitForExit()
        }
    }
}
