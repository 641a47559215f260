// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck) struct CommandSourceTests {
    private func makeSource(_ trace: Recorder<[Int]>, limit: Int = 3) -> CommandSource<Int> {
        CommandSource(bufferLimit: limit) { _, commands in trace.append(commands) }
    }

    @Test("S15: commands wait until the source is fired, and then come in one call, in order")
    func firing() async throws {
        let trace = Recorder<[Int]>()
        try await onLoop { loop in
            let source = makeSource(trace)
            #expect(source.add(1) == .accepted)
            source.add(to: loop)
            loop.run(for: .zero)
            #expect(trace.elements.isEmpty && source.count == 1)
            #expect(source.add(2) == .accepted)
            source.fire()
            source.fire()
            #expect(source.add(3) == .accepted)
            loop.run(for: .zero)
            #expect(trace.takeAll() == [[1, 2, 3]])
            source.fire()
            loop.run(for: .zero)
            #expect(trace.elements.isEmpty && source.count == 0)
            source.invalidate()
        }
    }

    @Test("S15: commands that come while the handler runs wait for the next firing")
    func whileHandling() async throws {
        let trace = Recorder<[Int]>()
        try await onLoop { loop in
            let source = CommandSource<Int> { source, commands in
                trace.append(commands)
                switch commands {
                case [1]: #expect(source.add(2) == .accepted)
                case [2, 3]: #expect(source.send(4) == .accepted)
                default: loop.stop()
                }
            }
            source.add(to: loop)
            #expect(source.send(1) == .accepted)
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(loop.run(for: .zero) == .timedOut)
            #expect(trace.elements == [[1]])
            #expect(source.send(3) == .accepted)
            #expect(loop.runGuarded() == .stopped)
        }
        #expect(trace.elements == [[1], [2, 3], [4]])
    }

    @Test("a full buffer and an invalid source accept no command, and say which they are")
    func refusals() async throws {
        let trace = Recorder<[Int]>()
        try await onLoop { loop in
            let source = makeSource(trace)
            source.add(to: loop)
            for number in 0..<3 { #expect(source.add(number) == .accepted) }
            #expect(source.add(3) == .bufferFull)
            #expect(source.send(3) == .bufferFull)
            loop.run(for: .zero)
            #expect(trace.elements.isEmpty)
            source.fire()
            loop.run(for: .zero)
            #expect(trace.takeAll() == [[0, 1, 2]])
            #expect(source.send(4) == .accepted)
            source.invalidate()
            source.invalidate()
            #expect(!source.isValid && source.count == 0)
            #expect(source.send(5) == .sourceInvalid)
            source.fire()
            #expect(loop.run(for: .zero) == .finished)
            source.add(to: loop)
            #expect(loop.run(for: .zero) == .finished)
            #expect(trace.elements.isEmpty)
            #expect(CommandSource<Int>.defaultBufferLimit == 1024)
        }
    }

    @Test("commands wait across a removal, and go to the next loop")
    func removal() async throws {
        let trace = Recorder<[Int]>()
        try await onLoop { loop in
            let source = makeSource(trace)
            source.add(to: loop, mode: "other")
            #expect(source.send(1) == .accepted)
            source.remove(from: loop, mode: "other")
            source.add(to: loop)
            loop.run(for: .zero)
            #expect(trace.elements == [[1]])
        }
    }

    @Test("S15: eight clients send to one worker: every command is handled once, each client's in order")
    func manySenders() async throws {
        let handled = Recorder<[Int]>()
        let count = Counter("handled commands")
        try await besideLoop { loop in
            let source = CommandSource<[Int]>(bufferLimit: 16) { _, commands in
                for command in commands { handled.append(command) }
                count.increment(by: commands.count)
            }
            source.add(to: loop)
            let threads = (0..<8).map { thread in
                runOnThread {
                    for number in 0..<200 {
                        while source.send([thread, number]) == .bufferFull { yieldThread() }
                    }
                }
            }
            for thread in threads { try thread.join() }
            count.waitUntilCount(1600)
        }
        #expect(handled.count == 1600)
        for thread in 0..<8 {
            #expect(handled.elements.filter { $0[0] == thread }.map { $0[1] } == Array(0..<200))
        }
    }

    @Test("invalidation races senders: what was accepted is handled or released, and nothing is accepted after it")
    func invalidationRace() async throws {
        let released = Counter("released commands")
        try await besideLoop { loop in
            for _ in 0..<20 {
                let source = CommandSource<LifeProbe> { _, _ in }
                source.add(to: loop)
                let threads = (0..<4).map { _ in
                    runOnThread { while source.send(LifeProbe(released)) != .sourceInvalid {} }
                }
                source.invalidate()
                for thread in threads { try thread.join() }
                #expect(source.count == 0)
            }
        }
    }

    @Test("the loop keeps the source while it is in it, and nothing keeps it after that", arguments: 0..<4)
    func lifetime(_ way: Int) async throws {
        let released = Counter("released objects")
        try await onLoop { loop in
            weak var source: CommandSource<LifeProbe>?
            do {
                let probe = LifeProbe(released)
                let made = CommandSource<LifeProbe> { _, _ in _ = probe }
                made.addClient(on: loop, registered: { _ in _ = probe }, removed: { _ in _ = probe })
                #expect(made.add(probe) == .accepted)
                source = made
                if way > 0 { made.add(to: loop) }
            }
            #expect((source != nil) == (way > 0))
            // The client's notice holds it until the client has been notified.
            if way != 1 { loop.run(for: .zero) }
            if way == 2 { source?.remove(from: loop) }
            if way == 3 { source?.invalidate() }
            #expect((source == nil) == (way != 1))
        }
        #expect(released.value == 1)
    }
}
