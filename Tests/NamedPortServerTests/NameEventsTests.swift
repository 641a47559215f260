// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Watching names in tasks", .leakCheck(settles: true, warmingUp: makeSpareDescriptor))
struct NameEventsTests {
    private let own = sysProcessID()

    @Test("a sequence gives the names that are there, then those that come and go")
    func sequence() async throws {
        try await withAsyncFixture { fixture in
            let (first, second) = (MachPort(), MachPort())
            try fixture.names.register(first, name: "first")
            var iterator = fixture.names.events.makeAsyncIterator()
            #expect(try await iterator.next().map(short) == "+first \(own)")
            for _ in 0..<20 {
                async let change: Void = fixture.names.register(second, name: "second")
                let event = try await iterator.next()
                #expect(event.map(short) == "+second \(own)")
                try await change
                fixture.names.unregister("second")
                #expect(try await iterator.next().map(short) == "-second \(own)")
            }
            first.invalidate()
            #expect(try await iterator.next().map(short) == "-first \(own)")
            second.invalidate()
        }
    }

    @Test("changes between two calls are reported later, without those that are over meanwhile")
    func unasked() async throws {
        try await withAsyncFixture { fixture in
            var iterator = fixture.names.events.makeAsyncIterator()
            let early = MachPort()
            try fixture.names.register(early, name: "early")
            #expect(try await iterator.next().map(short) == "+early \(own)")
            for _ in 0..<100 {
                let port = MachPort()
                try fixture.names.register(port, name: "passing")
                port.invalidate()
            }
            early.invalidate()
            #expect(try await iterator.next().map(short) == "-early \(own)")
        }
    }

    @Test("a cancelled task's sequence ends, at any moment, 100 times")
    func cancelled() async throws {
        try await withAsyncFixture { fixture in
            for round in 0..<100 {
                let task = Task {
                    var count = 0
                    for try await _ in fixture.names.events { count += 1 }
                    return count
                }
                for _ in 0..<(round % 20) { await Task.yield() }
                task.cancel()
                let count: Int = try await task.value
                #expect(count == 0)
            }
        }
    }

    @Test("an owner that is killed goes in a sequence, too")
    func killed() async throws {
        try await withAsyncFixture { fixture in
            let holder = try await offThePool { () throws -> ChildProcess in
                let holder = try ChildProcess(builtProduct("port-test-peer"), ["hold", fixture.directory])
                try holder.take("name")
                return holder
            }
            var iterator = fixture.names.events.makeAsyncIterator()
            #expect(try await iterator.next().map(short) == "+name \(holder.processID)")
            holder.kill()
            #expect(try await iterator.next().map(short) == "-name \(holder.processID)")
            try await holder.waitForExit()
            unlink(try fixture.file("name"))
        }
    }
}
