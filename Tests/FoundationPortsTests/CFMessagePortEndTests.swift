// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import PortSystem
import Synchronization
import TestSupport
import Testing

/// What the C functions of a test have seen; a C function captures nothing.
let seen = Mutex<[String]>([])

private func takeSeen() -> [String] {
    seen.withLock { list in
        defer { list = [] }
        return list
    }
}

@Suite("CFMessagePort: contexts and ends", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortEndTests {
    /// A context whose functions note that they were called, and whose retain gives the info itself.
    private static func context(_ info: UnsafeMutableRawPointer?) -> CFMessagePortContext {
        CFMessagePortContext(
            version: 0, info: info,
            retain: { info in
                seen.withLock { $0.append("retain") }
                return info
            },
            release: { _ in seen.withLock { $0.append("release") } }, copyDescription: nil)
    }

    @Test("D-S6: the info is retained when the port is made, around each callout, and released at the end")
    func context() async throws {
        try await onLoopThread {
            _ = takeSeen()
            let name = PortBench.name()
            let info = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
            defer { info.deallocate() }
            var context = Self.context(info)
            let port = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, _, _, got in
                    seen.withLock { $0.append("call") }
                    return reply(got == UnsafeMutableRawPointer(bitPattern: 8) ? "?" : "\(got!)")
                }, &context, nil)
            #expect(takeSeen() == ["retain"])
            var got = CFMessagePortContext()
            CFMessagePortGetContext(port, &got)
            #expect(got.info == info && got.retain != nil && got.release != nil)
            // Another one for the known port is not used.
            #expect(CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil) === port)
            #expect(takeSeen() == [])
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1) == Answer(0, "\(info)"))
            #expect(takeSeen() == ["retain", "call", "release"])
            CFMessagePortInvalidate(port)
            CFMessagePortInvalidate(port)
            #expect(takeSeen() == ["release"])
            CFMessagePortGetContext(port, &got)
            #expect(got.info == nil)
        }
    }

    @Test("D-S6: a context without an info is retained and released all the same")
    func withoutInfo() async throws {
        try await onLoopThread {
            _ = takeSeen()
            let name = PortBench.name()
            var context = Self.context(nil)
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil)
            #expect(takeSeen() == ["retain"])
            CFRunLoopAddSource(CFRunLoopGetCurrent(), CFMessagePortCreateRunLoopSource(nil, port, 0), .defaultMode)
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1, "x").status == 0)
            #expect(takeSeen() == ["retain", "release"])
            CFMessagePortInvalidate(port)
            #expect(takeSeen() == ["release"])
        }
    }

    @Test("D-S6: a context whose name is refused is not retained, or released again")
    func refusedContext() async throws {
        try await onLoopThread {
            _ = takeSeen()
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let info = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
            defer { info.deallocate() }
            var context = Self.context(info)
            #expect(CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil) == nil)
            let calls = takeSeen()
            #expect(calls.count { $0 == "retain" } == calls.count { $0 == "release" })
            try peer.waitForExit()
        }
    }

    @Test("D-S6, D-S19: the last release of a port releases its info and frees its name, and calls nothing else")
    func released() async throws {
        try await onLoopThread {
            _ = takeSeen()
            let name = PortBench.name()
            let info = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
            defer { info.deallocate() }
            var context = Self.context(info)
            do {
                let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil)
                CFMessagePortSetInvalidationCallBack(port) { _, _ in seen.withLock { $0.append("ended") } }
            }
            #expect(takeSeen() == ["retain", "release"])
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
        }
    }

    @Test("D-S7: the end marks the port, frees the name, calls the client, releases the info, ends the source, once")
    func order() async throws {
        try await onLoopThread {
            _ = takeSeen()
            let name = PortBench.name()
            let info = UnsafeMutableRawPointer.allocate(byteCount: 8, alignment: 8)
            defer { info.deallocate() }
            var context = CFMessagePortContext()
            context.info = info
            context.release = { _ in
                let isValid = sourceOfOrder.withLock { $0.map { CFRunLoopSourceIsValid($0) } }
                seen.withLock { $0.append("release, source \(isValid!)") }
            }
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil)
            let source = CFMessagePortCreateRunLoopSource(nil, port, 0)
            sourceOfOrder.withLock { $0 = source }
            defer { sourceOfOrder.withLock { $0 = nil } }
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, .defaultMode)
            CFMessagePortSetInvalidationCallBack(port) { port, info in
                let name = CFMessagePortGetName(port)
                let heir = CFMessagePortCreateLocal(nil, name, { _, _, _, _ in nil }, nil, nil)
                let isFree = heir != nil && heir !== port
                CFMessagePortInvalidate(heir)
                let isSourceValid = sourceOfOrder.withLock { $0.map { CFRunLoopSourceIsValid($0) } }
                CFMessagePortInvalidate(port)  // changes nothing
                seen.withLock {
                    $0.append("ended, valid \(CFMessagePortIsValid(port)), free \(isFree), info \(info != nil)")
                    $0.append("source \(isSourceValid!)")
                }
            }
            CFMessagePortInvalidate(port)
            #expect(
                takeSeen() == [
                    "ended, valid false, free true, info true", "source true", "release, source true",
                ])
            #expect(!CFRunLoopSourceIsValid(source))
            CFMessagePortSetInvalidationCallBack(port) { _, info in
                seen.withLock { $0.append("late, info \(info != nil)") }
            }
            #expect(takeSeen() == ["late, info false"])
            CFMessagePortInvalidate(nil)
        }
    }

    @Test(
        "D-S8: the end of a remote port is noticed on the main queue, once, without a source",
        arguments: ["kill", "exit", "invalidate", "same process"])
    func remoteEnd(how: String) async throws {
        let ends = endsOfRemotes
        _ = ends.takeAll()
        let before = ends.total
        DispatchQueue.main.setSpecific(key: mainKey, value: 1)
        try await onLoopThread {
            let name = PortBench.name()
            let peer = how == "same process" ? nil : try PortBench.peer("serve", name)
            let own = peer == nil ? try serve(name) { _, _, _, _ in nil } : nil
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            CFMessagePortSetInvalidationCallBack(remote) { _, info in
                let isMain = DispatchQueue.getSpecific(key: mainKey) == 1
                endsOfRemotes.append("main queue \(isMain), info \(info != nil)")
            }
            switch how {
            case "kill": peer?.kill()
            case "invalidate": try peer?.write("invalidate\n")
            case "exit": peer?.closeInput()
            default: CFMessagePortInvalidate(own)
            }
            #expect(ends.waitFor(before + 1) == ["main queue true, info false"])
            #expect(!CFMessagePortIsValid(remote))
            CFMessagePortInvalidate(remote)
            try peer?.waitForExit()
            let done = Gate("the main queue")
            DispatchQueue.main.async { done.open() }
            done.wait()
            #expect(ends.total == before + 1)
        }
    }

    @Test("D-S8: a check of a remote port that has ended calls back in the caller, and the main queue is not used")
    func polled() async throws {
        try await onLoopThread {
            _ = takeSeen()
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            peer.kill()
            try peer.waitForExit()
            #expect(!CFMessagePortIsValid(remote))
            CFMessagePortSetInvalidationCallBack(remote) { _, _ in seen.withLock { $0.append("at once") } }
            #expect(takeSeen() == ["at once"])
            #expect(ask(remote, 1) == Answer(kCFMessagePortIsInvalid))
        }
    }

    @Test("D-S17: a server that is killed while it answers gives -5 at once, and -3 from then on")
    func killedServer() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let killer = runOnThread {
                let line = try peer.nextLine()
                #expect(line == "holding x")
                peer.kill()
            }
            #expect(ask(remote, 3, "x", receive: 1_000) == Answer(kCFMessagePortBecameInvalidError))
            try killer.join()
            #expect(!CFMessagePortIsValid(remote))
            #expect(ask(remote, 3) == Answer(kCFMessagePortIsInvalid))
            try peer.waitForExit()
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
        }
    }

    @Test("D-S17: a server that is killed with a request in its queue gives -5", arguments: [false, true])
    func killedBeforeReading(isStopped: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("hold", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            if isStopped { peer.kill(SIGSTOP) }
            let loop = CFRunLoopGetCurrent()
            let killer = runOnThread {
                let deadline = Watchdog.deadline
                while !CFRunLoopIsWaiting(loop), .now < deadline { yieldThread() }
                peer.kill()
            }
            #expect(ask(remote, 1, receive: 1_000) == Answer(-5))
            try killer.join()
            try peer.waitForExit()
        }
    }

    @Test("D-S16, D-S17: a port that ends while its callback runs sends that reply, and drops the requests behind it")
    func endedWhileAnswering() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let second = Gate("the second request")
            let threads = (0..<2).map { number in
                runOnThread {
                    if number == 1 { second.wait() }
                    return ask(remote, 3, "\(number)", receive: 1_000)
                }
            }
            let line = try peer.nextLine()
            #expect(line == "holding 0")
            second.open()
            #expect(ask(remote, 1, "", mode: nil) == Answer(0))
            try peer.write("invalidate\n")
            #expect(try peer.nextLine() == "done invalidate")
            let late = try threads[1].join()
            #expect([-3, -5].contains(late.status))
            try peer.write("go\n")
            let first = try threads[0].join()
            #expect(first == Answer(0, "0"))
            try peer.waitForExit()
        }
    }

    @Test("D-S8: a callback that is set after an end that nobody has noticed yet is called once")
    func setLate() async throws {
        let before = endsOfRemotes.total
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            peer.kill()
            try peer.waitForExit()
            CFMessagePortSetInvalidationCallBack(remote) { _, _ in endsOfRemotes.append("late") }
            _ = endsOfRemotes.waitFor(before + 1)
            #expect(!CFMessagePortIsValid(remote))
            PortBench.settle()
            #expect(endsOfRemotes.total == before + 1)
        }
    }

    @Test("D-S17: a server that exits in its callback, or invalidates its port before a request is read, gives -5")
    func exitedServer() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = try PortBench.peer("serve", name)
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 7) == Answer(-5))
            try peer.waitForExit()
            let own = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in CFMessagePortInvalidate(own) }
            CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, .defaultMode)
            #expect(ask(remote, 1, receive: 1_000) == Answer(-5))
        }
    }

    @Test("D-S13, D-S17: a remote port that is invalidated during the wait ends it with -5", arguments: [false, true])
    func invalidatedDuringWait(inLoop: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let own = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let remote = try #require(CFMessagePortCreateRemote(nil, name as CFString))
            for limit in [1_000.0, 1e12] {
                let port = try #require(CFMessagePortCreateRemote(nil, name as CFString))
                if inLoop {
                    let timer = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in CFMessagePortInvalidate(port) }
                    CFRunLoopAddTimer(CFRunLoopGetCurrent(), timer, .defaultMode)
                    #expect(ask(port, 1, receive: limit) == Answer(-5))
                } else {
                    let loop = CFRunLoopGetCurrent()
                    let other = runOnThread {
                        let deadline = Watchdog.deadline
                        while !CFRunLoopIsWaiting(loop), .now < deadline { yieldThread() }
                        CFMessagePortInvalidate(port)
                    }
                    #expect(ask(port, 1, receive: limit) == Answer(-5))
                    try other.join()
                }
            }
            #expect(!CFMessagePortIsValid(remote))
            CFMessagePortInvalidate(own)
        }
    }
}

private let sourceOfOrder = Mutex<CFRunLoopSource?>(nil)
private let mainKey = DispatchSpecificKey<Int>()
private let endsOfRemotes = EndRecorder()

/// Ends that callbacks have reported.
private final class EndRecorder: Sendable {
    private let recorder = Recorder<String>("ends of remote ports")
    private let counter = Atomic<Int>(0)

    func append(_ text: String) {
        counter.add(1, ordering: .relaxed)
        recorder.append(text)
    }

    /// All since the process began.
    var total: Int { counter.load(ordering: .relaxed) }

    func takeAll() -> [String] { recorder.takeAll() }

    func waitFor(_ count: Int) -> [String] { recorder.waitUntilCount(count) }
}
