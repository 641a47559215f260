// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import RunLoopCore
import TestSupport
import Testing

@Suite("Traps of MessagePort", .leakCheck) struct PortTrapTests {
    @Test("a queue limit that is not possible traps, and says what is", arguments: [0, -1, 65_535, Int.max, Int.min])
    func queueLimit(limit: Int) async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [limit = limit as Int] in
            _ = MachPort(queueLimit: limit)
        }
        expectSentence("A queue limit of \(limit) is not possible; choose 1 to 65534 messages.", in: result)
    }

    @Test("a later queue limit that is not possible traps too", arguments: [0, -1, 65_535])
    func laterQueueLimit(limit: Int) async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [limit = limit as Int] in
            MachPort().setQueueLimit(limit)
        }
        expectSentence("A queue limit of \(limit) is not possible; choose 1 to 65534 messages.", in: result)
    }

    @Test("the smallest and the largest queue limit do not trap")
    func possibleLimits() {
        for limit in [1, MachPort.maximumQueueLimit] { #expect(MachPort(queueLimit: limit).queueLimit == limit) }
    }

    @Test("peer limits that are not possible trap, and say what is", arguments: [0, -1, MessageLimits.payload + 1])
    func peerLimits(size: Int) async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [size = size as Int] in
            var limits = PeerLimits.standard
            limits.messageBytes = size
            MachPort().setPeerLimits(limits)
        }
        expectSentence("choose each at least 1, and messageBytes at most 1610612736.", in: result)
    }

    @Test("a request that waits in the common modes traps, and says why")
    func requestInCommonModes() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            let port = MachPort()
            let request = { _ = try port.makeSendRight().request(MachMessage(id: 1), mode: .common) }
            try request()
            port.invalidate()
        }
        expectSentence("A request waits in one mode: the common modes stand for several.", in: result)
    }

    @Test("an initializer that writes more bytes than its capacity traps")
    func overrun() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = MachMessage(byteCapacity: 2) { span in
                for byte in UInt8(1)...3 { span.append(byte) }
            }
        }
        // The check and its sentence are the standard library's; optimized code traps without it, and asserts nothing.
        var isOptimized = true
        assert(
            {
                isOptimized = false
                return true
            }())
        if !isOptimized { expectSentence("OutputSpan capacity overflow", in: result) }
    }

    @Test("a capacity below zero traps, and says so")
    func negativeCapacity() async throws {
        let result = try await #require(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            _ = MachMessage(byteCapacity: -1) { _ in }
        }
        expectSentence("A capacity of -1 bytes is not possible; choose 0 or more.", in: result)
    }

    @Test("an initializer may write fewer bytes than its capacity, or none, and throw")
    func underrun() {
        struct Stop: Error, Equatable {}
        #expect(MachMessage(byteCapacity: 9) { span in span.append(7) }.bytes == [7])
        #expect(MachMessage(byteCapacity: 0) { _ in }.bytes == [])
        #expect(throws: Stop()) {
            _ = try MachMessage(byteCapacity: 9) { (span) throws(Stop) in
                span.append(7)
                throw Stop()
            }
        }
    }

    @Test("a bootstrap port in place of standard output, standard error or no descriptor traps", arguments: [-1, 1, 2])
    func bootstrapNumber(number: CInt) async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [number] in
            _ = try PortBootstrap(to: MachPort()).environment(inheritedAs: number)
        }
        expectSentence(
            "A program cannot inherit its bootstrap port as descriptor \(number). Choose 0, or 3 or more.", in: result)
    }
}
