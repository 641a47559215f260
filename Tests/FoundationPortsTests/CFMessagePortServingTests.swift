// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

// They settle: dispatch releases a port that a queue has served when its own threads have run.
@Suite("CFMessagePort: sources and queues", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortServingTests {
    @Test("D-S9: a port has one source; a new one after the client ended the old; none once it is invalid")
    func source() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in reply("x") }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let first = CFMessagePortCreateRunLoopSource(nil, port, 3)
            #expect(first != nil && CFMessagePortCreateRunLoopSource(nil, port, 4) === first)
            #expect(CFRunLoopSourceGetOrder(first) == 3)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), first, .defaultMode)
            #expect(ask(remote, 1) == Answer(0, "x"))
            CFRunLoopSourceInvalidate(first)
            #expect(CFMessagePortIsValid(port))
            let second = CFMessagePortCreateRunLoopSource(nil, port, 0)
            #expect(second != nil && second !== first && CFMessagePortCreateRunLoopSource(nil, port, 0) === second)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), second, .defaultMode)
            #expect(ask(remote, 1) == Answer(0, "x"))
            #expect(CFMessagePortCreateRunLoopSource(nil, remote, 0) == nil)
            CFMessagePortInvalidate(port)
            #expect(!CFRunLoopSourceIsValid(second))
            #expect(CFMessagePortCreateRunLoopSource(nil, port, 0) == nil)
        }
    }

    @Test("D-S9: a source on a loop retains its port, until it is removed")
    func retained() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            do { _ = try serve(name) { _, _, _, _ in reply("x") } }
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1) == Answer(0, "x"))
            do {
                let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
                let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
                #expect(CFRunLoopContainsSource(CFRunLoopGetCurrent(), source, .defaultMode))
                CFRunLoopRemoveSource(CFRunLoopGetCurrent(), source, .defaultMode)
            }
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
        }
    }

    @Test("D-S9: a port is not retained by a source that nobody has, nor by the loop of a thread that has ended")
    func notRetained() async throws {
        try await onLoopThread {
            let names = (0..<2).map { _ in PortBench.name() }
            do {
                let port = CFMessagePortCreateLocal(nil, names[0] as CFString, { _, _, _, _ in nil }, nil, nil)
                #expect(CFMessagePortCreateRunLoopSource(nil, port, 0) != nil)
            }
            #expect(CFMessagePortCreateRemote(nil, names[0] as CFString) == nil)
            try onNewThread {
                _ = try serve(names[1]) { _, _, _, _ in reply("x") }
                #expect(ask(CFMessagePortCreateRemote(nil, names[1] as CFString), 1) == Answer(0, "x"))
            }
            runLoop { CFMessagePortCreateRemote(nil, names[1] as CFString) == nil }
        }
    }

    @Test("D-S9: a source in the common modes is served in a mode that becomes common later")
    func commonModes() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let mode = CFRunLoopMode("later" as CFString)
            let port = try serve(name, in: .commonModes) { _, _, _, _ in reply("x") }
            CFRunLoopAddCommonMode(CFRunLoopGetCurrent(), mode)
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1, mode: mode) == Answer(0, "x"))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S10: a concurrent queue serves one message at a time, in their order")
    func queueOrder() async throws {
        try await onLoopThread {
            let got = Recorder<Int32>("messages on the queue")
            let running = Atomic<Int>(0)
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, id, _, _ in
                    #expect(running.add(1, ordering: .relaxed).newValue == 1)
                    got.append(id)
                    running.subtract(1, ordering: .relaxed)
                    return nil
                }, nil, nil)
            let queue = DispatchQueue(label: "test", attributes: .concurrent)
            CFMessagePortSetDispatchQueue(port, queue)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for id in 0..<Int32(500) { #expect(ask(remote, id, mode: nil).status == 0) }
            #expect(got.waitUntilCount(500) == Array(0..<500))
            CFMessagePortInvalidate(port)
            PortBench.finish(queue)
        }
    }

    @Test("D-S10: nil detaches a queue; a queue and a source exclude each other; a remote port has neither")
    func exclusion() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let queue = DispatchQueue(label: "test")
            let onQueue = DispatchSpecificKey<Int>()
            queue.setSpecific(key: onQueue, value: 1)
            let port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, _, _, _ in reply(DispatchQueue.getSpecific(key: onQueue) == 1 ? "queue" : "loop") }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            CFMessagePortSetDispatchQueue(remote, queue)
            CFMessagePortSetDispatchQueue(port, queue)
            #expect(CFMessagePortCreateRunLoopSource(nil, port, 0) == nil)
            #expect(ask(remote, 1) == Answer(0, "queue"))
            CFMessagePortSetDispatchQueue(port, nil)
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            #expect(ask(remote, 1) == Answer(0, "loop"))
            CFMessagePortSetDispatchQueue(port, queue)
            #expect(ask(remote, 1) == Answer(0, "loop"))
            CFRunLoopSourceInvalidate(source)
            CFMessagePortSetDispatchQueue(port, queue)
            #expect(ask(remote, 1) == Answer(0, "queue"))
            CFMessagePortInvalidate(port)
            CFMessagePortSetDispatchQueue(port, queue)
            CFMessagePortSetDispatchQueue(port, nil)
            CFMessagePortSetDispatchQueue(remote, nil)
            PortBench.finish(queue)
        }
    }

    @Test("D-S10: a queue does not retain its port: the last release frees the name")
    func queueRelease() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let queue = DispatchQueue(label: "test")
            do {
                let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in reply("x") }, nil, nil)
                CFMessagePortSetDispatchQueue(port, queue)
                #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1) == Answer(0, "x"))
                PortBench.finish(queue)
                withExtendedLifetime(port) {}
            }
            runLoop { CFMessagePortCreateRemote(nil, name as CFString) == nil }
            PortBench.finish(queue)
        }
    }

    @Test("D-S10: another process's port on a queue replies, and a killed one gives -5")
    func queueOfPeer() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("queue", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for number in 0..<20 { #expect(ask(remote, 1, "\(number)") == Answer(0, "\(number)")) }
            let killer = runOnThread {
                let line = try peer.nextLine()
                #expect(line == "holding x")
                peer.kill()
            }
            #expect(ask(remote, 3, "x") == Answer(-5))
            try killer.join()
            try peer.waitForExit()
        }
    }

    @Test("D-S14: a loop that runs inside of a callout serves the next messages", arguments: ["mode", "request"])
    func nested(how: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let other = PortBench.name()
            let order = Recorder<Int32>("messages")
            let inner = try serve(other) { _, _, _, _ in reply("inner") }
            let port = try serve(name) { _, id, _, _ in
                order.append(id)
                if id == 0 {
                    if how == "mode" {
                        runLoop { order.count == 5 }
                    } else {
                        while order.count < 5 {
                            let answer = ask(CFMessagePortCreateRemote(nil, other as CFString), 1)
                            #expect(answer == Answer(0, "inner"))
                        }
                    }
                    order.append(-1)
                }
                return nil
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for id in 0..<Int32(5) { #expect(ask(remote, id, send: 0, mode: nil).status == 0) }
            runLoop { order.count == 6 }
            #expect(order.elements == [0, 1, 2, 3, 4, -1])
            CFMessagePortInvalidate(port)
            CFMessagePortInvalidate(inner)
        }
    }

    @Test("D-S14: one pass of a loop handles one message")
    func onePerPass() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let order = Recorder<Int32>("messages")
            let port = try serve(name) { _, id, _, _ in
                order.append(id)
                return nil
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for id in 0..<Int32(5) { _ = ask(remote, id, mode: nil) }
            for count in 1...5 {
                let result = CFRunLoopRunInMode(.defaultMode, noLimit, true)
                #expect(result == .handledSource && order.count == count)
            }
            #expect(CFRunLoopRunInMode(.defaultMode, 0, true) == .timedOut)
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S16: a callback invalidates its port and stops its loop, and its reply is sent", arguments: [false, true])
    func lastReply(isPeer: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            if isPeer {
                let peer = try PortBench.peer("serve", name)
                #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 4) == Answer(0, "bye"))
                #expect(try peer.nextLine() == "stopped")
                #expect(try peer.waitForExit().end == .exited(0))
            } else {
                let server = try PortThread(name) { port, _, _, _ in
                    CFMessagePortInvalidate(port)
                    CFRunLoopStop(CFRunLoopGetCurrent())
                    return reply("bye")
                }
                #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 4) == Answer(0, "bye"))
                try server.end()
            }
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
        }
    }

    @Test("D-S16: a reply is released once it was sent, and the callback's data may be copied")
    func replyIsReleased() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let copy = Mutex<Data?>(nil)
            // unsafe: used on this thread only.
            nonisolated(unsafe) weak var sent: NSData?
            let port = try serve(name) { _, _, data, _ in
                copy.withLock { $0 = data as Data? }
                let made = NSMutableData(length: 100_000)!
                sent = made
                return .passRetained(made)
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            #expect(ask(remote, 1, "abc").text?.utf8.count == 100_000)
            #expect(copy.withLock { $0 } == Data("abc".utf8))
            #expect(sent == nil)
            CFMessagePortInvalidate(port)
        }
    }
}
