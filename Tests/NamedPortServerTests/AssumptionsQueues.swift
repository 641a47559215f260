// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Assumptions of programs: queues", .ports) struct AssumptionsQueues {
    @Test(
        "A10: one-way messages arrive in order, also when their sender has gone before the first is read",
        arguments: Transport.allCases)
    func order(transport: Transport) async throws {
        try await withFixture { fixture in
            let notes = Recorder<String>("notes")
            let local = try fixture.local(queueLimit: 100) { _, message in
                notes.append(message.text)
                return nil
            }
            try runOnThread {
                let remote = try fixture.remote(over: transport)
                for number in 0..<100 { try remote.send(MachMessage(id: 4, text: "\(number)"), sendLimit: longTimeout) }
            }.join()
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(notes.waitUntilCount(100) == (0..<100).map(String.init))
                local.invalidate()
            }
        }
    }

    @Test("A10: between processes too")
    func orderBetweenProcesses() async throws {
        try await withFixture { fixture in
            let notes = Recorder<String>("notes")
            let local = try fixture.local(queueLimit: 50) { _, message in
                notes.append(message.text)
                return nil
            }
            // This many have room: the sender exits although none was read.
            try withPeer(["send", fixture.directory, "name", "50"], at: fixture) { _ = try $0.waitForExit() }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(notes.waitUntilCount(50) == (0..<50).map(String.init))
                local.invalidate()
            }
        }
    }

    @Test(
        "A11, A27: a full queue is a send timeout after the limit; zero never waits; a waiting message gets the room",
        arguments: Transport.allCases)
    func full(transport: Transport) async throws {
        try await withFixture { fixture in
            let notes = Recorder<Int32>("notes")
            let local = try fixture.local(queueLimit: 3) { _, message in
                notes.append(message.id)
                return nil
            }
            let remote = try fixture.remote(over: transport)
            var count: Int32 = 0
            while failure({ try remote.send(MachMessage(id: count), sendLimit: .seconds(-1)) }) == nil { count += 1 }
            #expect(count >= 3)
            if transport == .memory { #expect(count == 3) }
            let limits = [0, -5, 0.0009, 0.001, 0.0155, .nan].map { Duration.sendLimit(cfSeconds: $0) }
            for limit in limits + [.nanoseconds(1), .zero] {
                let sent = failure { try remote.send(MachMessage(id: -1), sendLimit: limit) }
                #expect(sent?.code == .sendTimedOut)
                #expect(sent?.cfStatus == -1)
                let asked = failure { _ = try remote.request(MachMessage(id: -1), sendLimit: limit) }
                #expect(asked?.cfStatus == -1)
            }
            let waiting = [Duration.unlimited, .sendLimit(cfSeconds: 1e9), .sendLimit(cfSeconds: 259_200)].map {
                limit in
                runOnThread { try remote.send(MachMessage(id: -2), sendLimit: limit) }
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                for thread in waiting { try thread.join() }
                #expect(notes.waitUntilCount(Int(count) + 3) == Array(0..<count) + [-2, -2, -2])
                local.invalidate()
            }
        }
    }

    @Test("A19: an unserved port keeps its requests until a source is added", arguments: Transport.allCases)
    func retained(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            let source = try local.runLoopSource()
            let asking = Counter("requests")
            let clients = (0..<3).map { number in
                runOnThread {
                    let remote = try fixture.remote(over: transport)
                    try remote.send(MachMessage(), sendLimit: longTimeout)
                    asking.increment()
                    return try remote.ask(1, "\(number)a")
                }
            }
            asking.waitUntilCount(3)
            #expect(clients.allSatisfy { !$0.hasEnded })
            try withLoopThread { loop in
                loop.add(source)
                let replies = try clients.map { try $0.join() }
                #expect(replies == ["a0", "a1", "a2"])
                local.invalidate()
            }
        }
    }
}

@Suite struct LimitsFromSeconds {
    @Test("A11: CF's seconds as a send limit: milliseconds are cut off, ten days are no limit")
    func sendLimits() {
        let expected: [(Double, Duration)] = [
            (0, .zero), (-1, .zero), (.nan, .zero), (-.infinity, .zero), (0.0009, .zero), (0.001, .milliseconds(1)),
            (0.0019, .milliseconds(1)), (1, .seconds(1)), (3_600, .seconds(3_600)), (259_200, .seconds(259_200)),
            (863_999.9999, .milliseconds(863_999_999)), (864_000, .unlimited), (1e9, .unlimited),
            (.infinity, .unlimited),
            (.greatestFiniteMagnitude, .unlimited),
        ]
        for (seconds, limit) in expected { #expect(Duration.sendLimit(cfSeconds: seconds) == limit, "\(seconds)") }
        #expect(MonotonicInstant.after(.unlimited) == .distantFuture)
    }

    @Test("CF's seconds as a reply limit: fractions count, and times that exceed the clock are no limit")
    func replyLimits() {
        let expected: [(Double, Duration)] = [
            (0, .zero), (-1, .zero), (.nan, .zero), (0.25, .milliseconds(250)), (864_000, .seconds(864_000)),
            (1e9, .seconds(1_000_000_000)), (1e10, .unlimited), (.infinity, .unlimited),
            (.greatestFiniteMagnitude, .unlimited),
        ]
        for (seconds, limit) in expected { #expect(Duration.replyLimit(cfSeconds: seconds) == limit, "\(seconds)") }
    }
}
