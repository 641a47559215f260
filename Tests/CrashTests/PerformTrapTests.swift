// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import RunLoopCore
import TestSupport
import Testing

@Suite("Traps of the perform family and of command sources", .leakCheck) struct PerformTrapTests {
    private static let noMode = "A request in no mode is never called. Name at least one mode, or leave `in` out."

    @Test("a request in no mode traps")
    func noMode() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            ThreadRunLoop.main.perform(in: [], for: nil) {}
        }
        expectSentence(Self.noMode, in: result)
    }

    @Test("a delayed request in no mode traps")
    func delayedInNoMode() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            ThreadRunLoop.main.perform(after: .zero, in: []) {}
        }
        expectSentence(Self.noMode, in: result)
    }

    @Test("waiting for another loop in no mode traps")
    func waitInNoMode() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let loop = try await onNewThread { ThreadRunLoop.current }
            try await onNewThread { try loop.performAndWait(in: [], within: .seconds(1)) {} }
        }
        expectSentence(Self.noMode, in: result)
    }

    @Test("a task that waits for another loop in no mode traps")
    func suspendInNoMode() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let loop = try await onNewThread { ThreadRunLoop.current }
            try await loop.performAndWait(in: []) {}
        }
        expectSentence(Self.noMode, in: result)
    }

    @Test("a client that is notified in no mode traps")
    func clientInNoMode() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            CommandSource<Int> { _, _ in }.addClient(on: .main, in: [], registered: { _ in }, removed: { _ in })
        }
        expectSentence(Self.noMode, in: result)
    }

    @Test("a command source without room for a command traps", arguments: [0, -1, Int.min])
    func noBuffer(limit: Int) async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [limit = limit as Int] in
            _ = CommandSource<Int>(bufferLimit: limit) { _, _ in }
        }
        expectSentence("A command source needs a buffer for at least one command, not \(limit).", in: result)
    }
}
