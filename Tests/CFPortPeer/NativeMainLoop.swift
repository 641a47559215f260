// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import FoundationPorts
import PortSystem
import RunLoopCore
import Synchronization

/// A program whose main thread runs this package's loop, with ports on CoreFoundation's main loop. They are added by another
/// thread while the loop sleeps; then both loops run by turns.
struct NativeMainLoop {
    private static let total = 300
    private let name: String

    init(_ name: String) { self.name = name }

    /// The numbers of a port's messages, which must be 0, 1, 2 …
    private final class Log: NSObject, NSMachPortDelegate, Sendable {
        private struct State {
            var count = 0
            var isInOrder = true
            var allOnMainThread = true
        }

        private let state = Mutex(State())
        var count: Int { state.withLock { $0.count } }
        var text: String { state.withLock { "\($0.count) order \($0.isInOrder) main \($0.allOnMainThread)" } }

        func add(_ number: Int) {
            let isMain = sysThreadID() == getpid()
            state.withLock { state in
                if number != state.count { state.isInOrder = false }
                if !isMain { state.allOnMainThread = false }
                state.count += 1
            }
        }

        func handle(_ message: PortMessage) { add(Int(message.msgid)) }
    }

    func run() {
        let (messages, objects) = (Log(), Log())
        Thread.detachNewThread {
            while !ThreadRunLoop.main.isWaiting { sched_yield() }
            let port = NSMachPort()
            port.setDelegate(objects)
            RunLoop.main.add(port, forMode: .default)
            let local = CFMessagePortCreateLocal(
                nil, name as CFString,
                { _, id, _, _ in
                    messages.add(Int(id))
                    return nil
                }, nil, nil)
            CFRunLoopAddSource(
                CFRunLoopGetMain(), CFMessagePortCreateRunLoopSource(nil, local, 0), .commonModes)
            let remote = CFMessagePortCreateRemote(nil, name as CFString)
            for number in 0..<Self.total {
                _ = CFMessagePortSendRequest(remote, Int32(number), nil, 1e9, 0, nil, nil)
                port.send(before: .distantFuture, msgid: number, components: [], from: nil, reserved: 0)
            }
            // Both are on the loop until all has come.
            while objects.count < Self.total || messages.count < Self.total { _ = usleep(1_000) }
            DispatchQueue.main.sync {}
            CFMessagePortInvalidate(local)
            port.invalidate()
            say("ports \(MainQueueService.shared.portCount) events \(MainQueueService.shared.eventCount)")
            exit(0)
        }
        func count() -> Int { messages.count + objects.count }
        var isNative = true
        while count() < 2 * Self.total {
            let goal = min(count() + 20, 2 * Self.total)
            while count() < goal {
                if isNative {
                    ThreadRunLoop.current.run(for: .seconds(3_600), returnAfterSourceHandled: true)
                } else {
                    CFRunLoopRunInMode(.defaultMode, 60, true)
                }
            }
            isNative.toggle()
        }
        say("messages \(messages.text)")
        say("objects \(objects.text)")
        ThreadRunLoop.current.run()
    }
}
