// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Requests given up while the port ends", .shared) struct GivenUpAtEndTests {
    @Test("a handler learns that its client has given up, also when its port is ended at that moment, 200 times")
    func atOnce() async throws {
        try await withFixture { fixture in
            try withLoopThread { loop in
                for round in 0..<200 {
                    let (begun, go) = (Gate("the handler"), Gate("the go"))
                    let cancelled = Recorder<Bool>("the handler's end")
                    let local = try fixture.local { _, message in
                        begun.open()
                        go.wait()
                        cancelled.append(Self.becomesCancelled(message))
                        return nil
                    }
                    try local.schedule(on: loop)
                    let remote = try fixture.remote(over: .socket)
                    let client = runOnThread {
                        failure { try remote.request(MachMessage(), replyLimit: .milliseconds(1)) }
                    }
                    begun.wait()
                    let error = try client.join()
                    #expect(error?.code == .replyTimedOut)
                    go.open()
                    local.invalidate()
                    #expect(cancelled.waitUntilCount(1) == [true], "round \(round)")
                }
            }
        }
    }

    @Test("a handler that has ended its port learns that its client is gone")
    func clientGone() async throws {
        try await withFixture { fixture in
            let ended = Gate("the port's end")
            let gone = Gate("the client's end")
            let cancelled = Recorder<Bool>("the handler's end")
            try withLoopThread { loop in
                let local = try fixture.local { port, message in
                    port.invalidate()
                    ended.open()
                    gone.wait()
                    cancelled.append(Self.becomesCancelled(message))
                    return nil
                }
                try local.schedule(on: loop)
                try runOnThread {
                    let remote = try fixture.remote(over: .socket)
                    let error = failure { try remote.request(MachMessage(), replyLimit: .milliseconds(1)) }
                    #expect(error?.code == .replyTimedOut)
                    ended.wait()
                }.join()
                gone.open()
                #expect(cancelled.waitUntilCount(1) == [true])
            }
        }
    }

    @Test("a handler is notified of each task that gives up, by its limit or cancelled, 300 times")
    func tasks() async throws {
        try await withScratchDirectory(leaving: .anything) { scratch in
            let fixture = try NameFixture(scratch)
            let cancelled = Recorder<Bool>("the handler's end")
            let begun = Counter("handlers")
            let local = try fixture.local { _, message in
                begun.increment()
                cancelled.append(Self.becomesCancelled(message))
                return nil
            }
            try local.setDispatcher { $0() }
            let remote = try fixture.remote(over: .socket)
            for round in 0..<300 {
                let limit = round % 2 == 0 ? Duration.microseconds(100) : longTimeout
                let client = Task { try await remote.request(MachMessage(), replyLimit: limit) }
                if round % 2 == 1 {
                    await begun.waitUntilCount(round + 1)
                    client.cancel()
                }
                _ = await client.result
                await cancelled.waitUntilCount(round + 1)
            }
            #expect(cancelled.elements.filter { $0 }.count == 300)
            local.invalidate()
        }
    }

    /// Polls until the request is cancelled; false when the watchdog would expire.
    private static func becomesCancelled(_ message: MachMessage) -> Bool {
        let deadline = MonotonicInstant.after(.seconds(10))
        while !message.isCancelled {
            if deadline <= .now { return false }
            yieldThread()
        }
        return true
    }
}
