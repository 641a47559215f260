// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import FoundationPorts
import MessagePort
import NamedPortServer
import Synchronization
import TestSupport
import Testing

@Suite("CFMessagePort: ends and names", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortFaultTests {
    @Test("D-S6, D-S7: a port that ends while its callback runs keeps the info until the callback has returned")
    func infoOfRunningCallout() async throws {
        try await onLoopThread {
            releases.store(0, ordering: .relaxed)
            let name = PortBench.name()
            let info = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
            defer { info.deallocate() }
            var context = CFMessagePortContext()
            context.info = info
            context.release = { _ in releases.add(1, ordering: .relaxed) }
            let (running, ended) = (Gate("the callback"), Gate("the end"))
            let queue = DispatchQueue(label: "test")
            let port = try #require(
                CFMessagePortCreateLocal(
                    nil, name as CFString,
                    { _, _, _, _ in
                        running.open()
                        ended.wait()
                        return reply("\(releases.load(ordering: .relaxed))")
                    }, &context, nil))
            CFMessagePortSetDispatchQueue(port, queue)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let other = runOnThread {
                running.wait()
                CFMessagePortInvalidate(port)
                ended.open()
            }
            #expect(ask(remote, 1) == Answer(0, "0"))
            try other.join()
            PortBench.finish(queue)
            #expect(releases.load(ordering: .relaxed) == 1)
        }
    }

    @Test("D-S6: ends on one thread and callouts on another meet, and no callout is without its info")
    func endsMeetCallouts() async throws {
        try await onLoopThread {
            releases.store(0, ordering: .relaxed)
            let info = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
            defer { info.deallocate() }
            let count = rounds(200)
            let queue = DispatchQueue(label: "test")
            for _ in 0..<count {
                let name = PortBench.name()
                var context = CFMessagePortContext()
                context.info = info
                context.release = { _ in releases.add(1, ordering: .relaxed) }
                let address = UInt(bitPattern: info)
                let port = CFMessagePortCreateLocal(
                    nil, name as CFString,
                    { _, _, _, info in
                        #expect(UInt(bitPattern: info) == address)
                        return nil
                    }, &context, nil)
                CFMessagePortSetDispatchQueue(port, queue)
                let remote = CFMessagePortCreateRemote(nil, name as CFString)
                for _ in 0..<3 { _ = ask(remote, 1, send: 0, mode: nil) }
                CFMessagePortInvalidate(port)
            }
            PortBench.finish(queue)
            #expect(releases.load(ordering: .relaxed) == count)
        }
    }

    @Test("D-S7: a port that has ended releases its callback, also one that retains the port")
    func callbackIsReleased() async throws {
        final class Owner: Sendable {
            let port = Mutex<CFMessagePort?>(nil)
        }
        try await onLoopThread {
            // unsafe: used on this thread only.
            nonisolated(unsafe) weak var released: Owner?
            do {
                let owner = Owner()
                let port = CFMessagePortCreateLocal(
                    nil, PortBench.name() as CFString, { _, _, _, _ in withExtendedLifetime(owner) { nil } }, nil, nil)
                owner.port.withLock { $0 = port }
                released = owner
                CFMessagePortInvalidate(port)
            }
            #expect(released == nil)
        }
    }

    @Test("D-S10: a queue that is refused gets no message")
    func refusedQueue() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let onQueue = Atomic<Int>(0)
            let all = Atomic<Int>(0)
            let loop = Thread.current
            let port = try serve(name) { _, _, _, _ in
                if Thread.current !== loop { onQueue.add(1, ordering: .relaxed) }
                all.add(1, ordering: .relaxed)
                return nil
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let queue = DispatchQueue(label: "test")
            for round in 1...rounds(100) {
                #expect(ask(remote, 1, mode: nil) == Answer(0))
                CFMessagePortSetDispatchQueue(port, queue)
                PortBench.finish(queue)
                runLoop { all.load(ordering: .relaxed) == round }
            }
            #expect(onQueue.load(ordering: .relaxed) == 0)
            CFMessagePortInvalidate(port)
            PortBench.finish(queue)
        }
    }

    @Test("D-S10: a queue follows another one, and each message is served once, in order")
    func queueFollowsQueue() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let queues = (0..<2).map { DispatchQueue(label: "test \($0)") }
            let got = Recorder<Int32>("messages")
            let port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, id, _, _ in
                    got.append(id)
                    return nil
                }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for id in 0..<Int32(rounds(200)) {
                CFMessagePortSetDispatchQueue(port, queues[Int(id) % 2])
                #expect(ask(remote, id) == Answer(0, ""))
            }
            #expect(got.elements == Array(0..<Int32(got.count)))
            CFMessagePortInvalidate(port)
            for queue in queues { PortBench.finish(queue) }
        }
    }

    @Test(
        "D-S10: a queue serves nothing while a callback runs for what served the port before",
        arguments: ["queue", "detached queue", "loop"])
    func queueWaitsForQueue(before: String) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let queues = (0..<2).map { DispatchQueue(label: "test \($0)") }
            for _ in 0..<rounds(20) {
                let running = Atomic<Int>(0)
                let most = Atomic<Int>(0)
                let (first, go) = (Gate("the first callback"), Gate("its end"))
                let got = Recorder<Int32>("messages")
                let port = CFMessagePortCreateLocal(
                    nil, name as CFString,
                    { _, id, _, _ in
                        most.max(running.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
                        first.open()
                        if id == 0 { go.wait() }
                        running.subtract(1, ordering: .relaxed)
                        got.append(id)
                        return nil
                    }, nil, nil)
                var source: CFRunLoopSource?
                var thread: TestThread<Void>?
                if before == "loop" {
                    let made = CFMessagePortCreateRunLoopSource(nil, port, 0)
                    thread = runOnThread {
                        CFRunLoopAddSource(CFRunLoopGetCurrent(), made, .defaultMode)
                        CFRunLoopRunInMode(.defaultMode, noLimit, true)
                    }
                    source = made
                } else {
                    CFMessagePortSetDispatchQueue(port, queues[0])
                }
                let remote = CFMessagePortCreateRemote(nil, name as CFString)
                #expect(ask(remote, 0, mode: nil) == Answer(0))
                first.wait()
                if let source { CFRunLoopSourceInvalidate(source) }
                if before == "detached queue" { CFMessagePortSetDispatchQueue(port, nil) }
                CFMessagePortSetDispatchQueue(port, queues[1])
                for id in 1...3 { #expect(ask(remote, Int32(id), mode: nil) == Answer(0)) }
                for _ in 0..<100 { PortBench.finish(queues[1]) }
                go.open()
                #expect(got.waitUntilCount(4) == [0, 1, 2, 3])
                #expect(most.load(ordering: .relaxed) == 1)
                CFMessagePortInvalidate(port)
                for queue in queues { PortBench.finish(queue) }
                try thread?.join()
            }
        }
    }

    @Test("D-S10: an event of a source that ended on its way calls no callback beside the queue's")
    func lateEvent() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let got = Recorder<Int32>("messages")
            let local = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, id, _, _ in
                    got.append(id)
                    return nil
                }, nil, nil)
            let port = try #require(local)
            let queue = DispatchQueue(label: "test")
            queue.suspend()
            CFMessagePortSetDispatchQueue(port, queue)
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1, mode: nil) == Answer(0))
            port.body.handleOne(for: port)
            #expect(got.elements == [])
            queue.resume()
            #expect(got.waitUntilCount(1) == [1])
            CFMessagePortInvalidate(port)
            PortBench.finish(queue)
        }
    }

    @Test("D-S1, D-S2: names that look alike and have other bytes are different")
    func namesAreBytes() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let names = ["e\u{301}", "\u{E9}"].map { "\(name).\($0)" }
            let ports = try names.map { name in try serve(name) { _, _, _, _ in reply("\(name.utf8.count)") } }
            #expect(ports[0] !== ports[1])
            for name in names {
                let remote = CFMessagePortCreateRemote(nil, name as CFString)
                #expect(ask(remote, 1) == Answer(0, "\(name.utf8.count)"))
            }
            for port in ports { CFMessagePortInvalidate(port) }
        }
    }

    @Test("D-S7: the end of a port leaves its name alone when another port has it", arguments: [false, true])
    func nameOfAnother(isRenamed: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil)
            #expect(PortNameServer.shared.unregister(name))
            let heir = MachPort()
            try PortNameServer.shared.register(heir, name: name)
            if isRenamed { #expect(CFMessagePortSetName(port, PortBench.name() as CFString)) }
            CFMessagePortInvalidate(port)
            let found = try PortNameServer.shared.lookUp(name)
            #expect(found == heir.makeSendRight())
            heir.invalidate()
        }
    }

    @Test("D-S5: threads that rename one port leave one name of it")
    func renamedByThreads() async throws {
        try await onLoopThread {
            let port = try #require(CFMessagePortCreateLocal(nil, PortBench.name() as CFString, nil, nil, nil))
            let names = (0..<4).map { _ in (0..<rounds(100)).map { _ in PortBench.name() } }
            let threads = names.map { names in
                runOnThread { for name in names { #expect(CFMessagePortSetName(port, name as CFString)) } }
            }
            for thread in threads { try thread.join() }
            let last = CFMessagePortGetName(port) as String?
            for name in names.joined() {
                let isLast = name == last
                #expect((CFMessagePortCreateRemote(nil, name as CFString) != nil) == isLast)
                let again = CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil)
                #expect((again === port) == isLast)
                if !isLast { CFMessagePortInvalidate(again) }
            }
            CFMessagePortInvalidate(port)
        }
    }

    @Test("D-S4: a known remote port is not found by a name that its port has no longer")
    func nameLeavesRemote() async throws {
        try await onLoopThread {
            let (name, other) = (PortBench.name(), PortBench.name())
            let port = try serve(name) { _, _, _, _ in reply("first") }
            let remote = try #require(CFMessagePortCreateRemote(nil, name as CFString))
            #expect(CFMessagePortSetName(port, other as CFString))
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
            let peer = try PortBench.peer("serve", name)
            let fresh = try #require(CFMessagePortCreateRemote(nil, name as CFString))
            #expect(fresh !== remote && ask(fresh, 1, "peer") == Answer(0, "peer"))
            #expect(CFMessagePortCreateRemote(nil, name as CFString) === fresh)
            // The old object still reaches its port.
            #expect(CFMessagePortIsValid(remote) && ask(remote, 1) == Answer(0, "first"))
            CFMessagePortInvalidate(remote)
            #expect(CFMessagePortCreateRemote(nil, name as CFString) === fresh)
            CFMessagePortInvalidate(port)
            try peer.waitForExit()
        }
    }

    @Test("D-S12: a nil reply to a message whose id is that of a notice is empty data", arguments: [0o107, 0o111])
    func idOfNotice(id: Int32) async throws {
        try await onLoopThread {
            let port = try serve(PortBench.name()) { _, _, _, _ in nil }
            #expect(ask(port, id) == Answer(0, ""))
            CFMessagePortInvalidate(port)
        }
    }

    @Test("a block's mode is a mode or its name, or an array of them; any other object is refused")
    func blocks() async throws {
        try await onLoopThread {
            let loop = CFRunLoopGetCurrent()
            let name = CFRunLoopMode.defaultMode.rawValue
            let modes: [AnyObject] = [
                name, CFRunLoopMode.defaultMode! as AnyObject, [name] as NSArray,
                [CFRunLoopMode.defaultMode!] as NSArray, [CFRunLoopMode.commonModes!, "other" as NSString] as NSArray,
                NSNumber(value: 1), [NSNumber(value: 1)] as NSArray,
            ]
            var count = 0
            for mode in modes { CFRunLoopPerformBlock(loop, mode, { count += 1 }) }
            runLoop { count >= 5 }
            #expect(count == 5)
        }
    }

    @Test("D-S18: each refusal writes one line to standard error, and none is needed when that is closed")
    func refusals() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = try serve(name) { _, _, _, _ in nil }
            for command in ["refusals", "refusals-closed"] {
                let peer = try PortBench.peer(command, name)
                let count = try #require(Int(try peer.nextLine() ?? ""))
                let result = try peer.waitForExit()
                #expect(result.end == .exited(0))
                let lines = result.errors.split(separator: "\n")
                #expect(lines.count == (command == "refusals" ? count : 0), "\(result.errors)")
                #expect(lines.allSatisfy { $0.hasPrefix("CFMessagePort: ") })
            }
            CFMessagePortInvalidate(port)
        }
    }
}

private let releases = Atomic<Int>(0)
