// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A loop that is the only listener of a port polls the rings of its clients also while it handles. That ends as soon
/// as there is another listener: the kernel then reports what comes.
@Suite("loops that poll rings while they handle", .rings, .contract) struct BusyPollingTests {
    /// How the loop waits.
    private static let strategies: [WaitStrategy] = [.blocking, .spinning(for: Watchdog.longTimeout)]

    /// A port, its loop, and a client whose ring the loop polls.
    struct PolledPort {
        let port: MachPort
        let worker = Worker()
        let client: RingClient
        var connection: SocketConnection { client.connection }
        let handled = Recorder<Int32>()
        private let received = Counter("the first messages")
        let entered = Gate("the handler's call")
        let goOn = Gate("the end of the handler")
        /// What the handler of message 1 does before it waits.
        let deed = Box<@Sendable () -> Void>()

        init(_ bench: Bench, _ strategy: WaitStrategy) throws {
            port = try bench.port { [handled, received, entered, goOn, deed] _, message in
                if message.id == 0 {
                    received.increment()
                    return
                }
                if message.id == 1 {
                    deed.value.withLock { $0 }?()
                    entered.open()
                    goOn.wait()
                }
                handled.append(message.id)
            }
            client = try RingClient(1, at: port)
            worker.loop.waitStrategy = strategy
            try port.schedule(on: worker.loop)
            try startPolling()
        }

        func send(_ id: Int32) throws { try client.send(id, times: 1) }

        /// Sends messages until the loop keeps polling.
        private func startPolling() throws {
            for count in 1...1000 where !connection.isBusyPolled {
                try send(0)
                received.waitUntilCount(count)
            }
            try #require(connection.isBusyPolled)
        }

        /// Calls the handler, which waits until `end`.
        func enterHandler() throws {
            try send(1)
            entered.wait()
        }

        /// Whether the kernel reports a message that is sent now, or another loop has found it, and perhaps handled it.
        func isReportedElsewhere() throws -> Bool {
            let sockets = try #require(port.localPort.sockets)
            try send(2)
            let deadline = Watchdog.deadline
            while try sysPoll(sockets.rawValue, .readable, until: .distantPast).isEmpty, port.queueCount == 0,
                !handled.elements.contains(2)
            {
                if .now >= deadline { return false }
                yieldThread()
            }
            return true
        }

        func end() throws {
            goOn.open()
            try worker.end()
            port.invalidate()
        }
    }

    private static func withBusyPolling(
        _ strategy: WaitStrategy, _ body: @escaping @Sendable (PolledPort, Bench) throws -> Void
    ) async throws {
        try await onBench(over: .socket) { bench in
            let polled = try PolledPort(bench, strategy)
            let result = Result { try body(polled, bench) }
            try polled.end()
            try result.get()
        }
    }

    @Test("a message that comes during a handler costs no system call, and is handled next", arguments: strategies)
    func alone(strategy: WaitStrategy) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            try polled.enterHandler()
            #expect(polled.connection.isBusyPolled)
            let (_, calls) = try SystemCallFaults.counting {
                for id in Int32(2)..<7 { try polled.send(id) }
            }
            #expect(calls.isEmpty)
            polled.goOn.open()
            #expect(polled.handled.waitUntilCount(6) == [1, 2, 3, 4, 5, 6])
        }
    }

    /// The other listener that begins.
    enum Listener: CaseIterable, Sendable {
        case receiver, poller, doorbell, task, otherLoop, reader, replies, otherPort, nestedRun, secondLoop, movedTo,
            nobody
    }

    @Test(
        "a listener that begins during a handler is notified of what comes from then on",
        arguments: Listener.allCases, strategies)
    func listener(_ listener: Listener, strategy: WaitStrategy) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            let ended = Gate("the end of the poll, or of the task")
            let other = Worker()
            let (port, connection) = (polled.port, polled.connection)
            if listener == .nestedRun {
                polled.deed.value.withLock {
                    $0 = {
                        let mode = RunLoopMode(rawValue: "nested")
                        let timer = RunLoopTimer(fireDate: .now) { _ in #expect(!connection.isBusyPolled) }
                        ThreadRunLoop.current.add(timer, to: mode)
                        _ = ThreadRunLoop.current.run(mode: mode, for: .zero)
                        ended.open()
                    }
                }
            }
            try polled.enterHandler()
            #expect(connection.isBusyPolled == (listener != .nestedRun))
            switch listener {
            case .receiver:
                let receiver = runOnThread { try port.receive(within: Watchdog.longTimeout)?.id }
                let deadline = Watchdog.deadline
                while connection.isBusyPolled, .now < deadline { yieldThread() }
                try polled.send(7)
                #expect(try receiver.join() == 7)
            case .poller: #expect(try port.tryReceive() == nil)
            case .doorbell: _ = try port.doorbell()
            case .task:
                let taken = Recorder<Int32>()
                let task = Task {
                    defer { ended.open() }
                    for try await message in port.messages { taken.append(message.id) }
                }
                let deadline = Watchdog.deadline
                while connection.isBusyPolled, .now < deadline { yieldThread() }
                try polled.send(7)
                #expect(taken.waitUntilCount(1) == [7])
                task.cancel()
                ended.wait()
            case .otherLoop: try port.schedule(on: other.loop)
            case .reader:
                let source = RunLoopSource(name: "reader", readiness: { false }, perform: {})
                #expect(try port.localPort.attach(source))
                port.localPort.detach(source)
            case .replies: #expect(try connection.replySource() != nil)
            case .otherPort:
                let sockets = try PortSockets()
                try sockets.add(connection)
            case .nestedRun: ended.wait()
            case .movedTo: try port.move(to: other.loop)
            case .nobody: port.unschedule(from: polled.worker.loop)
            case .secondLoop:
                let source = try #require(port.localPort.state.withLock { $0.sources.first })
                other.loop.add(source)
            }
            #expect(!connection.isBusyPolled)
            #expect(try polled.isReportedElsewhere())
            try other.end()
        }
    }

    @Test("when its run ends it polls no more", arguments: strategies)
    func runEnds(strategy: WaitStrategy) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            polled.worker.loop.stop()
            let deadline = Watchdog.deadline
            while polled.connection.isBusyPolled, .now < deadline { yieldThread() }
            let isReported = try polled.isReportedElsewhere()
            #expect(isReported)
        }
    }

    @Test("it polls the rings of at most four clients, those that sent last", arguments: strategies)
    func limited(strategy: WaitStrategy) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            try polled.enterHandler()
            let others = try (Int32(2)..<6).map { try RingClient($0, at: polled.port) }
            for other in others { try other.send(3, times: 1) }
            let sockets = try #require(polled.port.localPort.sockets)
            polled.goOn.open()
            polled.handled.waitUntilCount(5)
            #expect(!sockets.isBusy(polled.connection) && !polled.connection.isBusyPolled)
            try polled.send(4)
            #expect(polled.handled.waitUntilCount(6).last == 4)
        }
    }

    @Test(
        "a wake-up packet sent for nothing is read out of the socket, and what comes later still wakes the loop",
        arguments: strategies)
    func spuriousWakeUp(strategy: WaitStrategy) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            try polled.client.ring.peer.send(PacketHeader(kind: .wakeUp))
            let deadline = Watchdog.deadline
            let socket = polled.connection.descriptor.rawValue
            while try !sysPoll(socket, .readable, until: .distantPast).isEmpty, .now < deadline { yieldThread() }
            for id in Int32(2)..<100 {
                try polled.send(id)
                polled.handled.waitUntilCount(Int(id) - 1)
            }
            #expect(polled.handled.takeAll() == Array(2..<100))
        }
    }

    @Test("the end of a client is noticed, and so is a port that ends", arguments: strategies, [false, true])
    func ends(strategy: WaitStrategy, isPort: Bool) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            let connection = polled.connection
            if isPort {
                polled.port.invalidate()
            } else {
                sysShutDown(polled.client.ring.peer.socket.rawValue)
            }
            let deadline = Watchdog.deadline
            while !connection.isClosed || polled.port.localPort.connectionCount > 0, .now < deadline {
                yieldThread()
            }
            #expect(connection.isClosed && polled.port.localPort.connectionCount == 0)
        }
    }

    @Test("a peer that wakes the loop at will harms no other peer", arguments: strategies)
    func idleWakes(strategy: WaitStrategy) async throws {
        try await Self.withBusyPolling(strategy) { polled, _ in
            let other = try RingClient(2, at: polled.port)
            for round in Int32(2)..<200 {
                for _ in 0..<round % 7 { _ = polled.client.ring.waker?.wake() }
                try other.send(round, times: 1)
                polled.handled.waitUntilCount(Int(round) - 1)
            }
            #expect(polled.handled.takeAll() == Array(2..<200))
            // The message still wakes it.
            try polled.send(200)
            #expect(polled.handled.waitUntilCount(199) == [200])
        }
    }

    #if PORT_FAULTS
    @Test("a loop whose set has no room for a wake channel is woken over the socket", arguments: [ENOSPC, ENOMEM])
    func refused(code: CInt) async throws {
        try await onBench(over: .socket) { bench in
            let handled = Recorder<Int32>()
            let port = try bench.port { _, message in handled.append(message.id) }
            let client = try RingClient(1, at: port)
            let loop = Box<ThreadRunLoop>()
            let isScheduled = Gate("the port's loop")
            let tries = Counter("tries to register a channel")
            let receiver = runOnThread {
                ThreadRunLoop.current.waitStrategy = .blocking
                #expect(throws: Never.self) { try port.schedule(on: .current) }
                loop.value.withLock { $0 = .current }
                isScheduled.open()
                let rules = [
                    SystemCallFaults.Rule(.epoll_ctl, .precede { tries.increment() }, times: .max),
                    .init(.epoll_ctl, .fail(code), times: .max),
                ]
                _ = SystemCallFaults.with(rules) {
                    ThreadRunLoop.current.run(mode: .default, until: Watchdog.deadline)
                }
            }
            isScheduled.wait()
            // It tries when nothing has come before it sleeps.
            var sent: Int32 = 0
            let deadline = Watchdog.deadline
            while sent < 100 || tries.value < 3 && .now < deadline {
                sent += 1
                try client.send(sent, times: 1)
                handled.waitUntilCount(Int(sent))
            }
            #expect(handled.takeAll() == Array(1...sent))
            loop.value.withLock { $0 }?.stop()
            try receiver.join()
            #expect(tries.value >= 3)
            port.invalidate()
        }
    }
    #endif
}
