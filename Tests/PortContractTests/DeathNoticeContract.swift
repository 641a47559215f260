// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("notices of the end of a port", .contract) struct DeathNoticeContract {
    @Test(
        "a notice outlives the right it was requested on, and reports the port's end only",
        arguments: TestTransport.allCases)
    func rightLetGo(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let (worker, notified) = (Worker(), Counter("death notices"))
            do {
                let right = try bench.right(to: port)
                try right.notifyWhenDead(on: worker.loop) { _ in notified.increment() }
            }
            try worker.perform {}
            #expect(notified.value == 0)
            try port.invalidate()
            notified.waitUntilCount(1)
            try worker.end()
            #expect(notified.value == 1)
        }
    }

    /// Requests a notice of a port's end, and lets the right go, on a loop that ends afterwards or has ended before.
    private func requestNotice(over transport: TestTransport, onEndedLoop hasEnded: Bool) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let worker = Worker()
            if hasEnded { try worker.end() }
            do {
                let right = try bench.right(to: port)
                try right.notifyWhenDead(on: worker.loop) { _ in }
            }
            if !hasEnded { try worker.end() }
            try port.invalidate()  // the leak check finds a connection that is still open
        }
    }

    @Test("a notice goes with its loop, and leaves nothing open", arguments: TestTransport.allCases)
    func loopEnds(over transport: TestTransport) async throws {
        try await requestNotice(over: transport, onEndedLoop: false)
    }

    private final class Held: Sendable {}

    private final class WeakReference: Sendable {
        struct Reference {
            weak var object: Held?
        }
        let reference = Mutex(Reference())
    }

    @Test("what a notice's handler holds goes with the notice's loop", arguments: TestTransport.allCases)
    func released(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            let (worker, weak) = (Worker(), WeakReference())
            do {
                let held = Held()
                weak.reference.withLock { $0.object = held }
                try right.notifyWhenDead(on: worker.loop) { _ in _ = held }
            }
            try worker.perform {}
            #expect(weak.reference.withLock { $0.object } != nil)
            try worker.end()
            #expect(weak.reference.withLock { $0.object } == nil)
            #expect(!right.isDead)
        }
    }

    @Test("a notice on a loop that has ended leaves nothing open", arguments: TestTransport.allCases)
    func endedLoop(over transport: TestTransport) async throws {
        try await requestNotice(over: transport, onEndedLoop: true)
    }

    @Test(
        "a request in the mode of a notice leaves the notice there", arguments: TestTransport.allCases,
        [RunLoopMode.default, .common])
    func requestInTheSameMode(over transport: TestTransport, mode: RunLoopMode) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.echo) { right, port in
                let notified = Counter("death notices")
                try right.notifyWhenDead(in: mode) { _ in
                    notified.increment()
                    ThreadRunLoop.current.stop()
                }
                let idle = RunLoopSource {}
                ThreadRunLoop.current.add(idle)
                _ = try right.ask(MachMessage(), mode: .default)
                try port.invalidate()
                #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
                #expect(notified.value == 1)
                idle.invalidate()
            }
        }
    }

    @Test("a request that ends on a notice's loop while the notice comes leaves it there", arguments: [false, true])
    func requestEndsMeanwhile(portEndsToo: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let (server, idle) = (Worker(), RunLoopSource {})
            ThreadRunLoop.current.add(idle)
            for _ in 0..<30 { try raceOfRequestsAndNotice(bench, server, portEndsToo: portEndsToo) }
            idle.invalidate()
            try server.end()
        }
    }

    @Test("a notice keeps the request's source that it finds in its mode just before the request removes it")
    func sourceRemoved() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let remote = try #require(right.destination as? RemotePort)
            let (connection, loop, notified) = (
                try #require(remote.connection), ThreadRunLoop.current, Counter("death notices")
            )
            let notice = DeathNotice(loop: loop, mode: .default) { _ in notified.increment() }
            // A source like the connection's own.
            let routine = LateNotice(notice: notice, connection: connection)
            let source = RunLoopSource(keepsModeAlive: false, routine: routine)
            try source.watch(connection.descriptor.rawValue)
            connection.state.withLock { $0.source = source }
            try remote.beginReplies(on: loop, in: .default)
            remote.endReplies(on: loop, in: .default, to: MessageEnds())
            let hasCome = routine.hasCome.load(ordering: .relaxed)
            #expect(hasCome)
            port.invalidate()
            let (idle, deadline) = (RunLoopSource {}, Watchdog.deadline)
            loop.add(idle)
            while notified.value == 0, .now < deadline { loop.run(for: .milliseconds(1)) }
            #expect(notified.value == 1)
            idle.invalidate()
        }
    }

    /// Requests end in the notice's mode, one after the other, until the notice is there.
    private func raceOfRequestsAndNotice(_ bench: Bench, _ server: Worker, portEndsToo: Bool) throws {
        let port = try bench.port { _, message in try? message.reply(message) }
        try port.schedule(on: server.loop)
        let right = try bench.right(to: port)
        let (loop, start, notified) = (ThreadRunLoop.current, Gate("the start"), Counter("death notices"))
        let requester = runOnThread {
            start.wait()
            try right.notifyWhenDead(on: loop) { _ in notified.increment() }
            if portEndsToo { port.invalidate() }
        }
        start.open()
        repeat {
            let error = portError { () throws(PortError) in _ = try right.ask(MachMessage(), mode: .default) }
            #expect(error == nil || portEndsToo && (error?.code == .peerDied || error?.code == .deadName))
        } while !requester.hasEnded
        try requester.join()
        if !portEndsToo { #expect(notified.value == 0) }
        port.invalidate()
        let deadline = Watchdog.deadline
        while notified.value == 0, .now < deadline { loop.run(for: .milliseconds(1)) }
        loop.run(for: .zero)
        #expect(notified.value == 1)
    }

    @Test("a notice does not keep its loop running", arguments: TestTransport.allCases)
    func idleLoop(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try right.notifyWhenDead { _ in }
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
            try port.invalidate()
        }
    }

    @Test("a new client that sends nothing is no handled source")
    func silentClient() async throws {
        try await onBench(over: .socket) { bench in
            let seen = Recorder<Int32>()
            let port = try bench.port(acceptsInBackground: false) { port, message in
                seen.append(message.id)
            }
            try port.schedule()
            let right = try bench.right(to: port)
            let worker = Worker()
            let main = ThreadRunLoop.current
            // The message comes only after the loop has seen the silent client and sleeps again.
            let observer = RunLoopObserver(activities: .afterWaiting, repeats: false) { _, _ in
                _ = try? worker.perform { try? right.send(MachMessage(id: 5)) }
            }
            main.add(observer)
            #expect(main.run(for: longTimeout, returnAfterSourceHandled: true) == .handledSource)
            #expect(seen.elements == [5])
            port.invalidate()
            try worker.end()
        }
    }
}

/// Receives for a connection. When its source first leaves a mode, a notice is added.
private final class LateNotice: SourceRoutine {
    let notice: DeathNotice
    let connection: SocketConnection
    let hasCome = Atomic(false)

    init(notice: DeathNotice, connection: SocketConnection) {
        (self.notice, self.connection) = (notice, connection)
    }

    func didLeave(_ mode: RunLoopMode, of loop: ThreadRunLoop) {
        guard !hasCome.exchange(true, ordering: .relaxed) else { return }
        connection.state.withLock { $0.coldState.deathNotices.append(notice) }
    }

    func perform() -> SourceOutcome {
        connection.receive(into: nil)
        return .nothing
    }
}
