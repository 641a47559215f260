// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(
    "Waiting for names in tasks", .leakCheck(threadNames: ["port-send"], settles: true, warmingUp: makeSpareDescriptor))
struct NameWaitTaskTests {
    @Test("a task gets the name when it comes, and needs no run loop of its own")
    func found() async throws {
        try await withAsyncFixture { fixture in
            for _ in 0..<50 {
                let port = MachPort()
                async let right = fixture.names.waitFor("name", within: longTimeout)
                try fixture.names.register(port, name: "name")
                #expect(try await right == port.makeSendRight())
                port.invalidate()
            }
        }
    }

    @Test("many tasks wait at once for one thread, and all get the name")
    func many() async throws {
        try await withAsyncFixture { fixture in
            let port = MachPort()
            let rights = try await withThrowingTaskGroup(of: SendRight.self) { group in
                for _ in 0..<50 { group.addTask { try await fixture.names.waitFor("name", within: longTimeout) } }
                await Task.yield()
                try fixture.names.register(port, name: "name")
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(rights == Array(repeating: port.makeSendRight(), count: 50))
            port.invalidate()
        }
    }

    @Test("a cancelled task stops waiting, before the call and at any moment of it")
    func cancelled() async throws {
        try await withAsyncFixture { fixture in
            for round in 0..<100 {
                let task = Task {
                    do throws(PortError) {
                        _ = try await fixture.names.waitFor("name", within: .seconds(100_000))
                        return PortError.Code?.none
                    } catch {
                        return error.code
                    }
                }
                for _ in 0..<(round % 20) { await Task.yield() }
                task.cancel()
                #expect(await task.value == .cancelled)
            }
        }
    }

    @Test("at the limit a task gets the error")
    func limit() async throws {
        try await withAsyncFixture { fixture in
            for limit in [Duration.zero, .milliseconds(10)] {
                let start = MonotonicInstant.now
                let code = await Task {
                    do throws(PortError) {
                        _ = try await fixture.names.waitFor("name", within: limit)
                        return PortError.Code?.none
                    } catch {
                        return error.code
                    }
                }.value
                #expect(code == .nameWaitTimedOut)
                #expect(start.duration(to: .now) >= limit)
            }
        }
    }
}

/// Runs a test with a directory of names.
func withAsyncFixture(_ body: (NameFixture) async throws -> Void) async throws {
    try await withScratchDirectory(leaving: .anything) { scratch in
        let fixture = try NameFixture(scratch)
        try await body(fixture)
        #expect(try sysList(fixture.directory + "/names") == [])
    }
}
