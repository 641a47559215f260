// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import Synchronization
import TestSupport
import Testing

@Suite("CFMessagePort: runs inside of a wait", .leakCheck(settles: true, warmingUp: PortBench.warmUp), .serialized)
struct CFMessagePortNestedWaitTests {
    /// What runs the mode of the wait again.
    enum Nesting: CaseIterable { case timer, observer }

    /// Has a callout of the wait call something, once.
    private func once(in nesting: Nesting, _ body: @escaping () -> Void) {
        let loop = CFRunLoopGetCurrent()
        let isDone = Mutex(false)
        let call = {
            let isFirst = isDone.withLock { done in
                defer { done = true }
                return !done
            }
            if isFirst { body() }
        }
        if nesting == .timer {
            CFRunLoopAddTimer(loop, CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in call() }, .defaultMode)
        } else {
            let activity = CFRunLoopActivity.beforeWaiting.rawValue
            let observer = CFRunLoopObserverCreateWithHandler(nil, activity, false, 0) { _, _ in call() }
            CFRunLoopAddObserver(loop, observer, .defaultMode)
        }
    }

    @Test(
        "D-S13: a wait ends whose reply a run of the same mode has found, inside of a callout",
        arguments: Nesting.allCases, [false, true])
    func foundInside(nesting: Nesting, isPeer: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = isPeer ? try PortBench.peer("serve", name) : nil
            let go = Gate("the reply")
            let server =
                try isPeer
                ? nil
                : PortThread(name) { _, id, data, _ in
                    if id == 3 { go.wait() }
                    return reply(text(data))
                }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in 0..<3 {
                let isFound = Mutex(false)
                once(in: nesting) {
                    // The only source of the mode is the wait's.
                    do {
                        if let peer {
                            let line = try peer.nextLine()
                            #expect(line == "holding outer")
                            try peer.write("go\n")
                        } else {
                            go.open()
                        }
                    } catch {
                        Issue.record(error)
                    }
                    let result = CFRunLoopRunInMode(.defaultMode, noLimit, true)
                    isFound.withLock { $0 = result == .handledSource }
                }
                #expect(ask(remote, 3, "outer", receive: 1e12) == Answer(0, "outer"))
                #expect(isFound.withLock { $0 })
                if let peer {
                    let line = try peer.nextLine()
                    #expect(line == "done go")
                }
            }
            try server?.end()
            try peer?.waitForExit()
        }
    }

    @Test(
        "D-S13: requests inside of another one's callout each get their reply, in either order",
        arguments: Nesting.allCases, [false, true])
    func requestInside(nesting: Nesting, isPeer: Bool) async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let peer = isPeer ? try PortBench.peer("queue", name) : nil
            let server = try isPeer ? nil : PortThread(name) { _, _, data, _ in reply(text(data)) }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for _ in 0..<rounds(20) {
                once(in: nesting) {
                    for number in 0..<10 {
                        #expect(ask(remote, 1, "\(number)", receive: 1e12) == Answer(0, "\(number)"))
                    }
                }
                #expect(ask(remote, 1, "outer", receive: 1e12) == Answer(0, "outer"))
            }
            try server?.end()
            try peer?.waitForExit()
        }
    }

    @Test("D-S13: a wait whose time is up while a run inside of it goes on ends after that run")
    func timeIsUpInside() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let port = CFMessagePortCreateLocal(nil, name as CFString, { _, _, _, _ in nil }, nil, nil)
            let other = PortBench.name()
            let server = try PortThread(other) { _, _, _, _ in reply("inner") }
            let inner = CFMessagePortCreateRemote(nil, other as CFString)
            once(in: .timer) {
                let start = CFAbsoluteTimeGetCurrent()
                while CFAbsoluteTimeGetCurrent() < start + 0.1 { #expect(ask(inner, 1) == Answer(0, "inner")) }
            }
            #expect(ask(CFMessagePortCreateRemote(nil, name as CFString), 1, receive: 0.02) == Answer(-2))
            CFMessagePortInvalidate(port)
            try server.end()
        }
    }

    @Test("D-S13: a reply that has come when the time is up is received")
    func replyBehindTimeIsUp() async throws {
        try await onLoopThread {
            let name = PortBench.name()
            let (go, isAnswered) = (Gate("the reply"), Gate("the next message"))
            let server = try PortThread(name) { _, id, _, _ in
                if id == 1 { go.wait() } else { isAnswered.open() }
                return reply("late")
            }
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            let loop = CFRunLoopGetCurrent()
            // Due after the wait's own timer, in the same pass.
            let second = CFRunLoopTimerCreateWithHandler(nil, 1e11, 0, 0, 0) { _ in
                go.open()
                #expect(ask(remote, 2, mode: nil) == Answer(0))
                isAnswered.wait()
            }
            CFRunLoopAddTimer(loop, second, .defaultMode)
            let first = CFRunLoopTimerCreateWithHandler(nil, 0, 0, 0, 0) { _ in
                let start = CFAbsoluteTimeGetCurrent()
                while CFAbsoluteTimeGetCurrent() < start + 3.2 {}
                CFRunLoopTimerSetNextFireDate(second, CFAbsoluteTimeGetCurrent())
            }
            CFRunLoopAddTimer(loop, first, .defaultMode)
            #expect(ask(remote, 1, receive: 3) == Answer(0, "late"))
            CFRunLoopTimerInvalidate(second)
            go.open()
            try server.end()
        }
    }
}
