// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Watching names in tasks", .census(settles: true, warmingUp: makeSpareDescriptor))
struct NameEventsTests {
    private let own = sysProcessID()

    @Test("a sequence gives the names that are there, then those that come and go")
    func sequence() async throws {
        try await withAsyncPlace { place in
            let (first, second) = (MachPort(), MachPort())
            try place.names.register(first, name: "first")
            var iterator = place.names.events.makeAsyncIterator()
            #expect(try await iterator.next().map(short) == "+first \(own)")
            for _ in 0..<20 {
                async let change: Void = place.names.register(second, name: "second")
                let event = try await iterator.next()
                #expect(event.map(short) == "+second \(own)")
                try await change
                place.names.unregister("second")
                #expect(try await iterator.next().map(short) == "-second \(own)")
            }
            first.invalidate()
            #expect(try await iterator.next().map(short) == "-first \(own)")
            second.invalidate()
        }
    }

    @Test("changes between two calls are reported later, without those that are over meanwhile")
    func unasked() async throws {
        try await withAsyncPlace { place in
            var iterator = place.names.events.makeAsyncIterator()
            let early = MachPort()
            try place.names.register(early, name: "early")
            #expect(try await iterator.next().map(short) == "+early \(own)")
            for _ in 0..<100 {
                let port = MachPort()
                try place.names.register(port, name: "passing")
                port.invalidate()
            }
            early.invalidate()
            #expect(try await iterator.next().map(short) == "-early \(own)")
        }
    }

    @Test("a cancelled task's sequence ends, at any moment, 100 times")
    func cancelled() async throws {
        try await withAsyncPlace { place in
            for round in 0..<100 {
                let task = Task {
                    var count = 0
                    for try await _ in place.names.events { count += 1 }
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
        try await withAsyncPlace { place in
            let holder = try await offThePool { () throws -> ChildProcess in
                let holder = try ChildProcess(builtProduct("port-test-peer"), ["hold", place.directory])
                try holder.expect("ready")
                try holder.write("take name\n")
                try holder.expect("taken")
                return holder
            }
            var iterator = place.names.events.makeAsyncIterator()
            #expect(try await iterator.next().map(short) == "+name \(holder.processID)")
            holder.kill()
            #expect(try await iterator.next().map(short) == "-name \(holder.processID)")
            try await holder.waitForExit()
            unlink(try place.file("name"))
        }
    }
}
