// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import MessagePort
import NamedPortServer
import TestSupport
import Testing

// They settle: dispatch releases a port that a queue has served when its own threads have run.
@Suite("CFMessagePort: names", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortNameTests {
    @Test(
        "D-S1: a name is cut at 128 bytes, on a character",
        arguments: [("", 127), ("é", 127), ("", 128), ("é", 128), ("", 129), ("é", 129), ("🚢", 131), ("🚢", 128)])
    func cut(ending: String, length: Int) async throws {
        try await onLoopThread {
            let start = PortBench.name()
            let padding = length - start.utf8.count - ending.utf8.count
            let name = start + String(repeating: "x", count: padding) + ending
            #expect(name.utf8.count == length)
            let cut = length <= 128 ? name : String(name.dropLast(ending.isEmpty ? length - 128 : 1))
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, id, _, _ in reply("\(id)") }, nil, nil)
            #expect(port != nil && CFMessagePortGetName(port) as String? == cut)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(remote != nil && CFMessagePortGetName(remote) as String? == cut)
            #expect(CFMessagePortCreateRemote(nil, cut as CFString) === remote)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S1: a name with a NUL, and an empty one, is refused")
    func refused() async throws {
        try await onLoopThread {
            for name in ["a\0b", "\0", ""] {
                var free = DarwinBoolean(false)
                #expect(CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, &free) == nil)
                #expect(free.boolValue)
                #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
                let port = CFMessagePortCreateLocal(nil, nil, { _, _, _, _ in nil }, nil, nil)
                #expect(!CFMessagePortSetName(port, name as CFString))
                CFMessagePortInvalidate(port)
            }
        }
    }

    @Test("D-S1: a port without a name is valid, and can be reached once it gets one")
    func unnamed() async throws {
        try await onLoopThread {
            var free = DarwinBoolean(true)
            let port = CFMessagePortCreateLocal(nil, nil, { _, id, _, _ in reply("\(id)") }, nil, &free)
            #expect(port != nil && !free.boolValue && CFMessagePortIsValid(port))
            #expect(CFMessagePortGetName(port) == nil)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            let name = PortBench.name()
            #expect(CFMessagePortSetName(port, name as CFString))
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 4) == Answer(0, "4"))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S2: a name that a CFMessagePort of the process has gives that port, with its first callback and context")
    func sameObject() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            var contexts = (CFMessagePortContext(), CFMessagePortContext())
            var numbers: (Int, Int) = (1, 2)
            withUnsafeMutablePointer(to: &numbers) { numbers in
                contexts.0.info = UnsafeMutableRawPointer(numbers)
                contexts.1.info = UnsafeMutableRawPointer(numbers) + 8
                var free = DarwinBoolean(true)
                let first = CFMessagePortCreateLocal(
                    nil, name as CFString, { _, _, _, info in reply("first \(info?.load(as: Int.self) ?? 0)") },
                    &contexts.0, &free)
                #expect(!free.boolValue)
                let second = CFMessagePortCreateLocal(
                    nil, name as CFString, { _, _, _, _ in reply("second") }, &contexts.1, &free)
                #expect(first === second && free.boolValue)
                let source = CFMessagePortCreateRunLoopSource(nil, second, 0)
                CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
                #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1) == Answer(0, "first 1"))
                CFMessagePortInvalidate(first)
                #expect(!CFMessagePortIsValid(second))
            }
        }
    }

    @Test("D-S2: a name of another process's port, or of a port of another kind, gives nil")
    func takenElsewhere() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            var free = DarwinBoolean(false)
            #expect(CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, &free) == nil)
            #expect(free.boolValue)
            try peer.waitForExit()
            let native = try LocalMessagePort(name: name) { _, _ in nil }
            #expect(CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, &free) == nil)
            #expect(free.boolValue)
            native.invalidate()
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, &free)
            #expect(port != nil && !free.boolValue)
            let other = try ChildProcess(try builtProduct("cf-port-peer"), ["serve", name])
            #expect(try other.nextLine() == "taken")
            try other.waitForExit()
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S2: many threads that make one name get one port, and one of them made it")
    func manyMakers() async throws {
        try await onLoopThread {
            for _ in 0..<rounds(40) {
                let name = PortBench.name()
                let start = Gate("the start")
                let threads = (0..<4).map { _ in
                    runOnThread {
                        start.wait()
                        var free = DarwinBoolean(true)
                        let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, &free)
                        return (port, free.boolValue)
                    }
                }
                start.open()
                let made = try threads.map { try $0.join() }
                #expect(Set(made.compactMap(\.0)).count == 1 && made.allSatisfy { $0.0 != nil })
                #expect(made.count { !$0.1 } == 1)
                CFMessagePortInvalidate(made[0].0)
            }
        }
    }

    @Test("D-S3: a port that was invalidated, and is still retained, gives its name to a fresh one, 50 times")
    func rebuilt() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            var retained: [CFMessagePort] = []
            for round in 0..<50 {
                var free = DarwinBoolean(true)
                let port = CFMessagePortCreateLocal(
                    nil, name as CFString, { _, _, _, _ in reply("\(round)") }, nil, &free)
                #expect(!free.boolValue && !retained.contains { $0 === port })
                retained.append(try #require(port))
                let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
                CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
                #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1) == Answer(0, "\(round)"))
                CFMessagePortInvalidate(port)
            }
            #expect(retained.allSatisfy { !CFMessagePortIsValid($0) })
        }
    }

    @Test("D-S4: a remote port is one object for a name; nil for an unknown one; a fresh one after the end of the old")
    func remotes() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
            for kind in ["serve", "own"] {
                let peer = kind == "serve" ? try PortBench.peer("serve", name) : nil
                let own = peer == nil ? try serve(name) { _, _, _, _ in nil } : nil
                let remote = try #require(CFMessagePortCreateRemote(nil, name as CFString))
                #expect(CFMessagePortIsRemote(remote) && CFMessagePortCreateRemote(nil, name as CFString) === remote)
                // The end of the object leaves the server alone.
                CFMessagePortInvalidate(remote)
                #expect(ask(remote, 2) == Answer(kCFMessagePortIsInvalid))
                let second = try #require(CFMessagePortCreateRemote(nil, name as CFString))
                #expect(second !== remote && ask(second, 2) == Answer(0, ""))
                if let own { CFMessagePortInvalidate(own) }
                if let peer {
                    peer.kill()
                    try peer.waitForExit()
                }
                #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
                #expect(!CFMessagePortIsValid(second))
                // The next server.
                let third = try serve(name) { _, _, _, _ in reply("next") }
                let fresh = CFMessagePortCreateRemote(nil, name as CFString)
                #expect(fresh !== second && ask(fresh, 1) == Answer(0, "next"))
                CFMessagePortInvalidate(third)
            }
        }
    }

    @Test("D-S5: a port gets another name and keeps its source; a name of this process or another one is refused")
    func renamed() async throws {
        try await onLoopThread {
            let (name, other) = (PortBench.name(), PortBench.name())
            let port = try serve(name) { port, _, _, _ in reply(CFMessagePortGetName(port) as String? ?? "-") }
            let second = try serve(other) { _, _, _, _ in nil }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(!CFMessagePortSetName(remote, PortBench.name() as CFString))
            #expect(!CFMessagePortSetName(port, name as CFString))
            #expect(!CFMessagePortSetName(port, other as CFString))
            CFMessagePortInvalidate(second)
            let peer = try PortBench.peer("serve", other)
            #expect(!CFMessagePortSetName(port, other as CFString))
            peer.kill()
            try peer.waitForExit()
            #expect(CFMessagePortSetName(port, other as CFString))
            #expect(CFMessagePortGetName(port) as String? == other)
            #expect(CFMessagePortCreateLocal(nil, other as CFString, { _, _, _, _ in nil }, nil, nil) === port)
            #expect(ask(CFMessagePortCreateRemote(nil, other as CFString), 1) == Answer(0, other))
            // The old name is free.
            let heir = try serve(name) { _, _, _, _ in nil }
            #expect(heir !== port)
            CFMessagePortInvalidate(heir)
            CFMessagePortInvalidate(port)
            #expect(!CFMessagePortSetName(port, PortBench.name() as CFString))
            #expect(CFMessagePortCreateRemote(nil, other as CFString) == nil)
        }
    }

    @Test("D-S5: a port that a queue serves gets no other name")
    func queued() async throws {
        try await onLoopThread {
            let (name, other) = (PortBench.name(), PortBench.name())
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let queue = DispatchQueue(label: "test")
            CFMessagePortSetDispatchQueue(port, queue)
            #expect(!CFMessagePortSetName(port, other as CFString))
            CFMessagePortSetDispatchQueue(port, nil)
            #expect(CFMessagePortSetName(port, other as CFString))
            CFMessagePortInvalidate(port)
            PortBench.finish(queue)
        }
    }
}
