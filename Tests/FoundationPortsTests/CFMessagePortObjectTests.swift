// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import func CoreFoundation.CFCopyDescription
import Foundation
@testable import FoundationPorts
import NamedPortServer
import Synchronization
import TestSupport
import Testing

@Suite("CFMessagePort: objects", .leakCheck(warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortObjectTests {
    @Test("D-S19: the tables retain no object")
    func weak() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            weak var local: CFMessagePort?
            weak var remote: CFMessagePort?
            do {
                let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
                local = port
                remote = CFMessagePortCreateRemote(nil, name as CFString)
                #expect(local != nil)
                withExtendedLifetime(port) {}
            }
            #expect(local == nil && remote == nil)
            let key = try PortName(name)
            #expect(ProcessObjects.current.locals.find(key) == nil)
        }
    }

    @Test("D-S19: ports that are released on some threads while others look them up are found whole, or not at all")
    func releasedWhileFound() async throws {
        try await onLoopThread {
            let names = (0..<3).map { _ in PortBench.name() }
            let threads = (0..<6).map { number in
                runOnThread {
                    for round in 0..<rounds(300) {
                        let name = names[(number + round) % names.count] as CFString
                        switch (number + round / 7) % 3 {
                        case 0:
                            let port = CFMessagePortCreateLocal(nil, name, { _, _, _, _ in nil }, nil, nil)
                            #expect(port != nil)
                        case 1:
                            let port = CFMessagePortCreateLocal(nil, name, { _, _, _, _ in nil }, nil, nil)
                            #expect(port != nil)
                            CFMessagePortInvalidate(port)
                            #expect(!CFMessagePortIsValid(port))
                        default:
                            guard let port = CFMessagePortCreateRemote(nil, name) else { continue }
                            #expect(CFMessagePortIsRemote(port) && CFMessagePortGetName(port) == name)
                            let status = CFMessagePortSendRequest(port, 1, nil, 0, 0, nil, nil)
                            #expect([0, -1, -3].contains(status))
                        }
                    }
                }
            }
            for thread in threads { try thread.join() }
            for name in names {
                let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
                #expect(port != nil)
                CFMessagePortInvalidate(port)
            }
        }
    }

    @Test("D-S19: many threads that end one port end it once")
    func endedOnce() async throws {
        try await onLoopThread {
            for _ in 0..<rounds(50) {
                let name = PortBench.name()
                let port = try #require(CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil))
                let remote = try #require(CFMessagePortCreateRemote(nil, name as CFString))
                endsOfOne.store(0, ordering: .relaxed)
                for one in [port, remote] {
                    CFMessagePortSetInvalidationCallBack(one) { _, _ in endsOfOne.add(1, ordering: .relaxed) }
                }
                let start = Gate("the start")
                let threads = (0..<4).map { number in
                    runOnThread {
                        start.wait()
                        CFMessagePortInvalidate(number % 2 == 0 ? port : remote)
                    }
                }
                start.open()
                for thread in threads { try thread.join() }
                #expect(endsOfOne.load(ordering: .relaxed) == 2)
            }
        }
    }

    @Test("D-S19: a context's functions may make and end ports of the same name")
    func reentrant() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            nameOfReentrant.withLock { $0 = name }
            var info = 0
            try withUnsafeMutablePointer(to: &info) { info in
                var context = CFMessagePortContext()
                context.info = UnsafeMutableRawPointer(info)
                context.retain = { info in
                    // The port is being made: its name is neither free nor another port's.
                    let name = nameOfReentrant.withLock { $0 } as CFString
                    #expect(CFMessagePortCreateLocal(nil, name, { _, _, _, _ in nil }, nil, nil) == nil)
                    return info
                }
                context.release = { _ in
                    let name = nameOfReentrant.withLock { $0 } as CFString
                    let port = CFMessagePortCreateLocal(nil, name, { _, _, _, _ in nil }, nil, nil)
                    #expect(port != nil && CFMessagePortIsValid(port))
                    CFMessagePortInvalidate(port)
                }
                let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil)
                try #require(port != nil)
                CFMessagePortInvalidate(port)
                do { _ = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, &context, nil) }
            }
            #expect(CFMessagePortCreateRemote(nil, name as CFString) == nil)
        }
    }

    @Test("D-S20: a forked child describes a port whose lock a thread of its parent has")
    func describedInChild() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread {
                let port = try #require(CFMessagePortCreateLocal(nil, PortBench.name() as CFString, nil, nil, nil))
                let (isLocked, isForked) = (Gate("the lock"), Gate("the child"))
                let holder = runOnThread {
                    port.body.state.withLock { _ in
                        isLocked.open()
                        isForked.wait()
                    }
                }
                isLocked.wait()
                let child = try forkInPlace()
                if child == 0 {
                    alarm(20)
                    let text = CFCopyDescription(port).map { unsafeBitCast($0, to: NSString.self) as String }
                    _exit(text?.contains("CFMessagePort local") == true ? 0 : 1)
                }
                #expect(exitStatus(of: child) == 0)
                isForked.open()
                try holder.join()
                CFMessagePortInvalidate(port)
            }
        }
    }

    @Test(
        "D-S20: in a forked child the parent's ports are invalid, and the parent's go on",
        .enabled(if: forkedChildMayStartThreads, "the thread sanitizer ends a forked child that starts a thread"))
    func forked() async {
        await #expect(processExitsWith: .success) {
            try await onNewThread {
                let name = PortBench.name()
                let server = try PortThread(name) { _, id, _, _ in reply("\(id)") }
                let remote = CFMessagePortCreateRemote(nil, name as CFString)
                try #require(ask(remote, 1) == Answer(0, "1"))
                let child = try forking {
                    var failures: [String] = []
                    func check(_ condition: Bool, _ text: String) { if !condition { failures.append(text) } }
                    for port in [server.port, remote] {
                        check(!CFMessagePortIsValid(port), "a port is valid")
                        check(ask(port, 1, mode: nil) == Answer(-3), "a message is sent")
                        check(ask(port, 1) == Answer(-3), "a request is sent")
                        check(CFMessagePortGetName(port) == nil, "a port has a name")
                        CFMessagePortInvalidate(port)
                    }
                    check(CFMessagePortCreateRunLoopSource(nil, server.port, 0) == nil, "a source is made")
                    // The child's own tables know none of the parent's, and have its own.
                    let own = CFMessagePortCreateLocal(nil, "\(name).child" as CFString, nil, nil, nil)
                    check(CFMessagePortIsValid(own), "no port of the child's own")
                    let found = CFMessagePortCreateRemote(nil, "\(name).child" as CFString)
                    check(ask(found, 1, mode: nil) == Answer(0), "no message to the child's own port")
                    check(CFMessagePortCreateLocal(nil, name as CFString, nil, nil, nil) == nil, "the name is taken")
                    CFMessagePortInvalidate(own)
                    return failures
                }
                #expect(exitStatus(of: child) == 0)
                #expect(CFMessagePortIsValid(remote) && CFMessagePortIsValid(server.port))
                #expect(ask(remote, 2) == Answer(0, "2"))
                try server.end()
            }
        }
    }
}

private let endsOfOne = Atomic<Int>(0)
private let nameOfReentrant = Mutex("")
