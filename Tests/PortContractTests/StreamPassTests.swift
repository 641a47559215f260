// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
@testable import RunLoopCore
import PortSystem
import Synchronization
import TestSupport
import Testing

/// A stream of messages to one port makes passes that skip checks that would find nothing. No user of the loop may
/// notice.
@Suite("the passes of a stream", .contract) struct StreamPassTests {
    private static let count = Int32(40)

    /// Queues the messages, has a handler do something with the third, and runs the loop until the last.
    ///
    /// - Returns: the ids and what else was noted, in order.
    private static func stream(_ third: @escaping @Sendable (MachPort, Recorder<String>) -> Void) throws -> [String] {
        let log = Recorder<String>()
        let port = MachPort { port, message in
            log.append("\(message.id)")
            if message.id == 3 { third(port, log) }
            if message.id == count { port.invalidate() }
        }
        let right = port.makeSendRight()
        for id in 1...count { try right.send(MachMessage(id: id)) }
        try port.schedule()
        while ThreadRunLoop.current.run(for: longTimeout) == .stopped { log.append("stopped") }
        return log.elements
    }

    private static func ids(_ range: ClosedRange<Int32>) -> [String] { range.map { "\($0)" } }

    @Test("each message has a pass of its own, which is counted")
    func counted() async throws {
        try await onNewThread {
            let (passes, count) = (Recorder<Int>(), Self.count)
            let port = MachPort { port, message in
                passes.append(ThreadRunLoop.current.passCount)
                if message.id == count { port.invalidate() }
            }
            for id in 1...count { try port.makeSendRight().send(MachMessage(id: id)) }
            try port.schedule()
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(passes.elements == Array(passes.elements[0]..<passes.elements[0] + Int(count)))
        }
    }

    @Test("alternating messages to two ports poll the kernel after 128 of them or 2 ms, and not more often")
    func polls() async throws {
        try await onNewThread {
            let (loop, seen, count) = (ThreadRunLoop.current, Counter("messages"), 4_000)
            let ports = (0..<2).map { _ in
                MachPort(queueLimit: count / 2) { _, _ in
                    seen.increment()
                    if seen.value == count { ThreadRunLoop.current.stop() }
                }
            }
            for port in ports {
                _ = try port.localPort.openSockets()  // so that there is something to ask the kernel for
                try port.schedule()
                let right = port.makeSendRight()
                for _ in 0..<count / 2 { try right.send(MachMessage()) }
            }
            let (before, start) = (loop.kernelWaitCount, MonotonicInstant.now)
            #expect(loop.run() == .stopped)
            let times = Int(start.duration(to: .now) / .milliseconds(2))
            #expect(loop.kernelWaitCount - before <= count / 128 + times + 4)
            for port in ports { port.invalidate() }
        }
    }

    @Test("a stop ends the run after the message, and the next run goes on")
    func stopped() async throws {
        try await onNewThread {
            let log = try Self.stream { _, _ in ThreadRunLoop.current.stop() }
            #expect(log == Self.ids(1...3) + ["stopped"] + Self.ids(4...Self.count))
        }
    }

    @Test("a block, a custom source and a due timer are served before the next message")
    func others() async throws {
        try await onNewThread {
            let log = try Self.stream { _, log in
                let loop = ThreadRunLoop.current
                let source = RunLoopSource { log.append("source") }
                loop.add(source)
                source.signal()
                loop.add(RunLoopTimer(fireDate: .distantPast) { _ in source.invalidate() })
                loop.perform { log.append("block") }
                loop.add(RunLoopTimer(fireDate: .distantPast) { _ in log.append("timer") })
            }
            #expect(log.prefix(3) == ["1", "2", "3"])
            #expect(Array(log[3...4]) == ["block", "source"])
            #expect(log[5] == "timer")
            #expect(Array(log[6...]) == Self.ids(4...Self.count))
        }
    }

    /// What another thread does to the loop while a message is handled.
    enum Deed: String, CaseIterable, Sendable { case stop, block, source, timer, port, observer }

    @Test(
        "what another thread has done before the handler returns is seen before the next message",
        arguments: Deed.allCases)
    func otherThread(deed: Deed) async throws {
        try await onNewThread {
            let log = try Self.stream { _, log in
                let loop = ThreadRunLoop.current
                let thread = runOnThread {
                    switch deed {
                    case .stop: loop.stop()
                    case .block: loop.perform { log.append("seen") }
                    case .source:
                        let source = RunLoopSource { log.append("seen") }
                        loop.add(source)
                        source.signal()
                        loop.add(RunLoopTimer(fireDate: .distantPast) { _ in source.invalidate() })
                    case .timer: loop.add(RunLoopTimer(fireDate: .distantPast) { _ in log.append("seen") })
                    case .port:
                        let other = MachPort { port, _ in
                            log.append("seen")
                            port.invalidate()
                        }
                        try other.makeSendRight().send(MachMessage())
                        try other.schedule(on: loop)
                    case .observer:
                        let observer = RunLoopObserver(activities: .beforeTimers, repeats: false) { _, _ in
                            log.append("seen")
                        }
                        loop.add(observer)
                    }
                }
                try? thread.join()
            }
            let position = try #require(log.firstIndex { $0 == "seen" || $0 == "stopped" })
            // A port that became ready later may be served after one that has waited.
            #expect(deed == .port ? position <= 4 : position == 3)
            #expect(log.filter { Int32($0) != nil } == Self.ids(1...Self.count))
        }
    }

    @Test("a timer that becomes due while a message is handled fires before the next one")
    func timerBecomesDue() async throws {
        try await onNewThread {
            let (log, fires, count) = (Recorder<String>(), MonotonicInstant.after(.milliseconds(50)), Self.count)
            let port = MachPort { port, message in
                log.append("\(message.id)")
                if message.id == 3 { while MonotonicInstant.now < fires {} }
                if message.id == count { port.invalidate() }
            }
            for id in 1...Self.count { try port.makeSendRight().send(MachMessage(id: id)) }
            try port.schedule()
            ThreadRunLoop.current.add(RunLoopTimer(fireDate: fires) { _ in log.append("timer") })
            while ThreadRunLoop.current.run(for: longTimeout) == .stopped {}
            // A slow machine may have it due before the third.
            let position = try #require(log.elements.firstIndex(of: "timer"))
            #expect(position <= 3)
            #expect(log.elements.filter { $0 != "timer" } == Self.ids(1...Self.count))
        }
    }

    @Test("another port that has a message is served next")
    func otherPort() async throws {
        try await onNewThread {
            let log = try Self.stream { _, log in
                let other = MachPort { port, _ in
                    log.append("other")
                    port.invalidate()
                }
                try? other.makeSendRight().send(MachMessage())
                try? other.schedule()
            }
            #expect(log.count == Int(Self.count) + 1)
            #expect(log[3] == "other" || log[4] == "other")
        }
    }

    @Test("an observer that comes sees every pass from then on")
    func observed() async throws {
        try await onNewThread {
            let log = try Self.stream { _, log in
                ThreadRunLoop.current.add(RunLoopObserver(activities: .beforeTimers) { _, _ in log.append("pass") })
            }
            #expect(log.prefix(3) == ["1", "2", "3"])
            let rest = Array(log[3...])
            #expect(rest.filter { $0 != "pass" } == Self.ids(4...Self.count))
            for id in 4...Self.count { #expect(rest.firstIndex(of: "\(id)").map { rest[$0 - 1] } == "pass") }
        }
    }

    @Test("a port that its handler unschedules is not served, and keeps its messages")
    func unscheduled() async throws {
        try await onNewThread {
            let log = try Self.stream { port, log in
                port.unschedule()
                log.append("\(port.queueCount) left")
                #expect((try? port.tryReceive())??.id == 4)
                port.invalidate()
            }
            #expect(log == ["1", "2", "3", "\(Self.count - 3) left"])
        }
    }

    @Test("a message is gone when its handler is over, before the next one is handled")
    func released() async throws {
        try await onNewThread {
            let (held, first) = (WeakPort(), Recorder<Bool>())
            let port = MachPort { port, message in
                if message.id > 1 { first.append(held.port.withLock { $0.value == nil }) }
                if message.id == 4 { port.invalidate() }
            }
            do {
                let inner = MachPort()
                held.port.withLock { $0.value = inner }
                try port.makeSendRight().send(MachMessage(id: 1, components: [.receiveRight(inner)]))
            }
            for id in Int32(2)...4 { try port.makeSendRight().send(MachMessage(id: id)) }
            try port.schedule()
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            #expect(first.elements == [true, true, true])
        }
    }

    @Test("a doorbell that comes while messages are handled is silent when the last is received")
    func event() async throws {
        try await onNewThread {
            let log = Recorder<Int32>()
            let port = MachPort { port, message in
                log.append(message.id)
                if message.id == 3 { _ = try? port.doorbell() }
                if message.id == 40 { ThreadRunLoop.current.stop() }
            }
            for id in Int32(1)...40 { try port.makeSendRight().send(MachMessage(id: id)) }
            try port.schedule()
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            #expect(log.elements == Array(1...40))
            #expect(try sysPoll(port.doorbell().descriptor, .readable, until: .distantPast).isEmpty)
            try port.makeSendRight().send(MachMessage())
            #expect(try !sysPoll(port.doorbell().descriptor, .readable, until: .distantPast).isEmpty)
            port.invalidate()
        }
    }

    @Test("a handler that receives gets the next messages itself, in order")
    func received() async throws {
        try await onNewThread {
            let log = try Self.stream { port, log in
                for _ in 0..<4 { log.append("took \((try? port.tryReceive())??.id ?? 0)") }
            }
            #expect(log == Self.ids(1...3) + (4...7).map { "took \($0)" } + Self.ids(8...Self.count))
        }
    }

    @Test("a handler that runs the loop has the next messages handled there")
    func nested() async throws {
        try await onNewThread {
            let log = try Self.stream { _, log in
                _ = ThreadRunLoop.current.run(for: .zero)
                log.append("nested run over")
            }
            #expect(log.filter { $0 != "nested run over" } == Self.ids(1...Self.count))
            #expect(log[4] == "nested run over")
        }
    }

    @Test("a run that returns after a source was handled returns after one message")
    func returning() async throws {
        try await onNewThread {
            let ids = Recorder<Int32>()
            let port = MachPort { _, message in ids.append(message.id) }
            for id in Int32(1)...20 { try port.makeSendRight().send(MachMessage(id: id)) }
            try port.schedule()
            for pass in 1...20 {
                let result = ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true)
                #expect(result == .handledSource)
                #expect(ids.elements.count == pass)
            }
            port.invalidate()
        }
    }

    @Test("a descriptor that is readable is served, though messages never end")
    func descriptor() async throws {
        try await onNewThread {
            let event = try EventDescriptor()
            let loop = ThreadRunLoop.current
            let port = MachPort { port, message in try? port.makeSendRight().send(message) }
            try port.makeSendRight().send(MachMessage())
            try port.makeSendRight().send(MachMessage())
            try port.schedule()
            let source = RunLoopSource(descriptor: event.raw) { loop.stop() }
            loop.add(source)
            event.signal()
            #expect(loop.run(for: longTimeout) == .stopped)
            source.invalidate()
            port.invalidate()
        }
    }
}

private final class WeakPort: Sendable {
    struct Reference: Sendable {
        weak var value: MachPort?
    }

    let port = Mutex(Reference())
}
