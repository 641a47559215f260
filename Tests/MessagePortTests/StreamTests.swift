// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// What holds between the messages that a handler gets in one go.
@Suite("Streams", .leakCheck) struct StreamTests {
    /// Has `count` messages wait for a port of this thread's loop, and handles them in one run of it.
    private func handle(_ count: Int32, by port: MachPort) throws {
        let loop = ThreadRunLoop.current
        let right = port.makeSendRight()
        for id in 0..<count { try right.send(MachMessage(id: id), within: .zero) }
        try port.schedule(on: loop)
        _ = loop.run(mode: .default, until: .distantFuture, while: { port.queueCount > 0 })
        port.invalidate()
    }

    @Test("a handler that sets another, or none, does so for the next message")
    func anotherHandler() async throws {
        try await onNewThread {
            let seen = Mutex<[String]>([])
            let note = { @Sendable (handler: String, message: MachMessage) in
                seen.withLock { $0.append("\(handler) \(message.id)") }
            }
            let port = MachPort { port, message in
                note("first", message)
                port.setHandler { port, message in
                    note("second", message)
                    if message.id == 2 { port.setHandler(nil) }
                }
            }
            try handle(5, by: port)
            #expect(seen.withLock(\.self) == ["first 0", "second 1", "second 2"])
        }
    }

    @Test("a handler that another thread sets between two messages gets the second")
    func handlerOfOtherThread() async throws {
        try await onNewThread {
            let seen = Mutex<[String]>([])
            let port = MachPort { port, message in
                seen.withLock { $0.append("first \(message.id)") }
                let other = runOnThread {
                    port.setHandler { _, message in seen.withLock { $0.append("second \(message.id)") } }
                }
                try? other.join()
            }
            try handle(3, by: port)
            #expect(seen.withLock(\.self) == ["first 0", "second 1", "second 2"])
        }
    }

    @Test("what a handler has captured is released when another is set, at the latest with the next message")
    func captured() async throws {
        final class Token: Sendable {}
        try await onNewThread {
            let token = Mutex<Token?>(Token())
            weak let seen = token.withLock(\.self)
            let wasThere = Mutex<[Bool]>([])
            let port = MachPort { [held = token.withLock { $0.take() }] port, _ in
                withExtendedLifetime(held) {}
                port.setHandler { _, _ in }
            }
            port.setInvalidationHandler { [weak seen] in wasThere.withLock { $0.append(seen != nil) } }
            try handle(2, by: port)
            #expect(wasThere.withLock(\.self) == [false])
        }
    }

    @Test("the bytes that a handler keeps stay as they are, whatever messages come later")
    func retainedBytes() async throws {
        try await onNewThread {
            let messages = Mutex<[MachMessage]>([])
            let lists = Mutex<[[UInt8]]>([])
            let loop = ThreadRunLoop.current
            let port = MachPort(queueLimit: 16) { _, message in
                if message.id % 3 == 0 { messages.withLock { $0.append(message) } }
                if message.id % 3 == 1 { lists.withLock { $0.append(message.bytes) } }
                if message.id == 2_999 { loop.stop() }
            }
            try port.schedule(on: loop)
            let right = port.makeSendRight()
            let sender = runOnThread {
                for id in Int32(0)..<3_000 {
                    let message = MachMessage(id: id, byteCapacity: 64) { bytes in
                        bytes.append(repeating: UInt8(truncatingIfNeeded: id), count: Int(id % 65))
                    }
                    try right.send(message, within: .seconds(60))
                }
            }
            loop.run()
            try sender.join()
            port.invalidate()
            func isAsMade(_ id: Int32, _ bytes: [UInt8]) -> Bool {
                bytes == [UInt8](repeating: UInt8(truncatingIfNeeded: id), count: Int(id % 65))
            }
            #expect(messages.withLock(\.self).allSatisfy { isAsMade($0.id, $0.bytes) })
            #expect(lists.withLock(\.self).enumerated().allSatisfy { isAsMade(Int32($0.offset * 3 + 1), $0.element) })
        }
    }
}
