// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
@testable import RunLoopCore
import PortSystem
import Synchronization
import TestSupport
import Testing

/// What a message costs, in counts, which are the same on every machine. portbench measures the time.
@Suite("what a message costs", .contract) struct CostTests {
    private static let count = 1_000

    #if PORT_FAULTS
    private static func total(_ calls: [SystemCall: Int]) -> Int { calls.values.reduce(0, +) }

    @Test("messages to a loop that has not polled yet wake it once, and need no system call each to be received")
    func inProcess() async throws {
        try await onNewThread {
            let last = Int32(Self.count - 1)
            let port = MachPort(queueLimit: Self.count) { _, message in
                if message.id == last { ThreadRunLoop.current.stop() }
            }
            try port.schedule()
            let right = port.makeSendRight()
            try right.send(MachMessage(id: last))  // so that the loop has its descriptors
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            let (_, sent) = try SystemCallFaults.counting { () throws in
                for id in 0...last { try right.send(MachMessage(id: id)) }
            }
            #expect(Self.total(sent) <= 1, "\(sent)")
            let (result, received) = SystemCallFaults.counting { ThreadRunLoop.current.run(for: longTimeout) }
            #expect(result == .stopped)
            #expect(Self.total(received) <= Self.count / 100, "\(received)")
            port.invalidate()
        }
    }

    @Test("over a socket, a message costs its sender one system call, and its receiver one and a share of a poll")
    func overSocket() async throws {
        try await onBench(over: .socket) { bench in
            let batch = 100  // as many as a socket has room for
            // A sender that fills more than half of a queue before its receiver runs asks for room meanwhile.
            let port = try bench.port(queueLimit: 2 * batch) { _, message in
                if message.id == 99 { ThreadRunLoop.current.stop() }
            }
            try port.schedule()
            let right = try bench.right(to: port)
            var received: [SystemCall: Int] = [:]
            var isCheap: Bool {
                received[.recvmsg, default: 0] <= batch + batch / 10 && Self.total(received) <= batch + batch / 3
            }
            // In the first round the connection is made, and accepted. A loop also polls every 2 ms: a round in which
            // it was delayed is repeated.
            for round in 0..<50 where round < 2 || !isCheap {
                let (_, sent) = try SystemCallFaults.counting { () throws in
                    for id in Int32(0)..<100 { try right.send(MachMessage(id: id)) }
                }
                let run = SystemCallFaults.counting { ThreadRunLoop.current.run(for: longTimeout) }
                received = run.calls
                #expect(run.result == .stopped)
                if round > 0 { #expect(sent == [.sendmsg: batch]) }
            }
            #expect(isCheap, "\(received)")
            port.invalidate()
        }
    }

    @Test("a peer that sends one message at a time is read by one call for each, and with all others each eighth time")
    func oneAtATime() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port { _, _ in ThreadRunLoop.current.stop() }
            try port.schedule()
            let right = try bench.right(to: port)
            func exchange(_ count: Int) throws {
                for id in 0..<Int32(count) {
                    try right.send(MachMessage(id: id))
                    #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
                }
            }
            try exchange(10)
            let (_, calls) = try SystemCallFaults.counting { () throws in try exchange(80) }
            let polls = 80 / (Tuning.solePollLimit + 1)
            #expect(calls[.sendmsg] == 80)
            #expect(calls[.recvmsg, default: 0] <= 80 + polls, "\(calls)")
            // The loop's wait for each, and the port's query which socket it is.
            #expect(calls[.epoll_wait, default: 0] <= 80 + polls, "\(calls)")
            #expect(Self.total(calls) <= 240 + 2 * polls, "\(calls)")
            port.invalidate()
        }
    }

    @Test("ports that the kernel reports together are served, and it is not asked for any of them again")
    func reportedTogether() async throws {
        try await onBench(over: .socket) { bench in
            let left = Counter()
            let ports = try (0..<20).map { _ in
                try bench.port { _, _ in
                    if left.increment() % 20 == 0 { ThreadRunLoop.current.stop() }
                }
            }
            for port in ports { try port.schedule() }
            let rights = try ports.map { try bench.right(to: $0) }
            for round in 0..<2 {
                for right in rights { try right.send(MachMessage()) }
                waitForIOThread()  // the connections over which they have asked for room are gone
                let (result, calls) = SystemCallFaults.counting { ThreadRunLoop.current.run(for: longTimeout) }
                #expect(result == .stopped)
                if round > 0 { #expect(calls[.poll] == nil, "\(calls)") }
            }
            for port in ports { port.invalidate() }
        }
    }
    #endif

    @Test("a run that polls is not spent on a port whose message was received since the kernel reported it")
    func pollingRun() async throws {
        try await onBench(over: .socket) { bench in
            let (pair, handled) = (Box<[MachPort]>(), Counter())
            // Whichever of the two is first receives the other's message.
            let takers = try (0..<2).map { index in
                try bench.port { _, _ in
                    let other = pair.value.withLock { $0?[1 - index] }
                    let taken = try? other?.tryReceive()
                    #expect(taken != nil)
                    ThreadRunLoop.current.stop()
                }
            }
            pair.value.withLock { $0 = takers }
            let third = try bench.port { _, _ in handled.increment() }
            let rights = try (takers + [third]).map { port in
                try port.schedule()
                let right = try bench.right(to: port)
                port.localPort.receiveFromSockets()  // accepts the connection
                return right
            }
            for right in rights[..<2] { try right.send(MachMessage()) }
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            try rights[2].send(MachMessage())
            // The end of a connection would be something for the run, too.
            withExtendedLifetime(rights) {
                #expect(ThreadRunLoop.current.run(for: .zero, returnAfterSourceHandled: true) == .handledSource)
            }
            #expect(handled.value == 1)
            for port in takers + [third] { port.invalidate() }
            pair.value.withLock { $0 = nil }
        }
    }

    @Test("a request to a loop that sleeps wakes it once, and so does the reply", arguments: TestTransport.inProcess)
    func wakeUps(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving({ _, message in try? message.reply(MachMessage(id: message.id)) }) { right, _, server in
                let loops = [server.loop, ThreadRunLoop.current]
                for loop in loops { loop.waitStrategy = .blocking }
                for id in Int32(0)..<5 { _ = try right.ask(MachMessage(id: id)) }
                let before = loops.map { $0.waitCounts.sleeps }
                for id in Int32(0)..<100 { _ = try right.ask(MachMessage(id: id)) }
                for (loop, count) in zip(loops, before) { #expect(loop.waitCounts.sleeps - count <= 101) }
            }
        }
    }

    #if PORT_FAULTS
    @Test("a request within a process to a loop that sleeps costs each side two system calls: to wake, and to sleep")
    func callsOfSleepers() async throws {
        try await onBench(over: .memory) { bench in
            let counted = Box<[SystemCall: Int]>()
            let port = try bench.port { port, message in
                if message.id == 0 { port.invalidate() }
                try? message.reply(MachMessage(id: message.id))
            }
            let server = runOnThread {
                ThreadRunLoop.current.waitStrategy = .blocking
                try port.schedule()
                let (_, calls) = SystemCallFaults.counting { ThreadRunLoop.current.run(for: longTimeout) }
                counted.value.withLock { $0 = calls }
            }
            ThreadRunLoop.current.waitStrategy = .blocking
            let right = port.makeSendRight()
            let (_, calls) = try SystemCallFaults.counting { () throws in
                for id in (Int32(0)..<100).reversed() { _ = try right.ask(MachMessage(id: id)) }
            }
            try server.join()
            let both = [calls, counted.value.withLock { $0 } ?? [:]]
            for calls in both { #expect(calls.values.reduce(0, +) <= 204, "\(calls)") }
        }
    }
    #endif

    /// The peer prints all numbers, so it runs once.
    private static let allocations = Result { try ChildProcess(builtProduct("allocation-peer"), []).waitForExit() }

    /// For a build without optimization, which allocates much more than programs do. There a stream allocates next to
    /// nothing for each message, as portbench counts; a message to another process allocates only its bytes. A fifth
    /// more is allowed.
    @Test("messages allocate no more than they did", arguments: [("stream", 4), ("requests", 9), ("sends", 1)])
    func allocations(kind: String, expected: Double) throws {
        let result = try Self.allocations.get()
        #expect(result.end == .exited(0), "\(result.errors)")
        // Under a sanitizer, whose allocator cannot be counted.
        if result.output == "uncounted\n" { return }
        let lines = result.output.split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix(kind + " ") })
        let numbers = lines.map { $0.split(separator: " ").compactMap { Double($0) } }
        try #require(numbers.count == 3 && numbers.allSatisfy { $0.count == 2 })
        let own = numbers[lines.firstIndex(of: line) ?? 0]
        #expect(own[0] / own[1] <= 1.2 * expected, "\(line)")
        // In an optimized build a stream allocates nothing; the bytes of sent messages are allocated in every build.
        #expect(numbers[2][0] >= numbers[2][1], "not counted: \(result.output)")
    }
}
