// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
@testable import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck(threadNames: ["command-source"], settles: true)) struct CommandSourceClientTests {
    private typealias Source = CommandSource<Int>

    private func makeSource() -> Source {
        Source { _, _ in }
    }

    @discardableResult
    private func addClient(
        _ name: String, to source: Source, on loop: ThreadRunLoop, in modes: [RunLoopMode] = [.common],
        limit: Duration = Watchdog.longTimeout, _ trace: Recorder<String>
    ) -> Source.Client {
        source.addClient(
            on: loop, in: modes, removalLimit: limit,
            registered: { context in trace.append("\(name) registered \(loop.isCurrent) \(context.source.isValid)") },
            removed: { _ in trace.append("\(name) removed \(loop.isCurrent)") })
    }

    @Test("S15: several clients are notified, late ones too, and once for all modes of a loop")
    func several() async throws {
        let trace = Recorder<String>()
        try await besideLoop { client in
            let source = makeSource()
            let worker = ThreadRunLoop.current
            addClient("first", to: source, on: client, trace)
            source.add(to: worker)
            source.add(to: worker, mode: "other")
            trace.waitUntilCount(1)
            addClient("late", to: source, on: client, trace)
            trace.waitUntilCount(2)
            source.remove(from: worker)
            #expect(trace.count == 2)
            source.remove(from: worker, mode: "other")
            #expect(trace.count == 4)
            source.invalidate()
            addClient("too late", to: source, on: client, trace)
            try client.performAndWait(within: Watchdog.longTimeout) {}
        }
        #expect(trace.elements.prefix(2) == ["first registered true true", "late registered true true"])
        #expect(Set(trace.elements.dropFirst(2)) == ["first removed true", "late removed true"])
    }

    @Test("S15: a source in two loops is registered with each and removed from each")
    func twoLoops() async throws {
        let registered = Recorder<Source.Context>()
        let removed = Recorder<Source.Context>()
        try await onLoop { loop in
            let workers = [RunningLoop(), RunningLoop()]
            let source = makeSource()
            source.addClient(
                on: loop, removalLimit: .zero, registered: { registered.append($0) }, removed: { removed.append($0) })
            for worker in workers { source.add(to: worker.loop) }
            loop.add(idleSource())
            loop.run(for: .zero)
            let contexts = workers.map(\.loop)
            #expect(registered.elements.map(\.loop) == contexts)
            #expect(registered.elements.map(\.source) == [source, source])
            try workers[0].stop()
            loop.run(for: .zero)
            #expect(removed.takeAll().map(\.loop) == [contexts[0]])
            source.invalidate()
            #expect(removed.takeAll().map(\.loop) == [contexts[1]])
            try workers[1].stop()
            _ = registered.takeAll()
        }
    }

    @Test("S15: a worker's thread that ends waits until the client has released the source")
    func workerEnds() async throws {
        let trace = Recorder<String>()
        try await besideLoop { client in
            let worker = runOnThread { [self] in
                let source = makeSource()
                addClient("client", to: source, on: client, trace)
                source.add(to: .current)
                trace.waitUntilCount(1)
            }
            try worker.join()
            #expect(trace.elements == ["client registered true true", "client removed true"])
        }
    }

    /// A worker that has registered its source with the clients of the calling thread, and invalidates it on request.
    private func startWorker(_ source: Source, _ mayEnd: Gate) -> TestThread<Void> {
        let loop = ThreadRunLoop.current
        let added = Gate("the source in the worker's loop")
        let worker = runOnThread {
            source.add(to: .current)
            added.open()
            mayEnd.wait()
            source.invalidate()
        }
        added.wait()
        loop.perform {}
        #expect(loop.runGuarded() == .finished)
        return worker
    }

    @Test("S15: a client whose loop does not run is waited for until its limit, and notified later")
    func deadline() async throws {
        let trace = Recorder<String>()
        try await onLoop { client in
            let source = makeSource()
            addClient("slow", to: source, on: client, limit: .milliseconds(1), trace)
            addClient("unawaited", to: source, on: client, limit: .zero, trace)
            let mayEnd = Gate("the worker's end")
            let worker = startWorker(source, mayEnd)
            #expect(trace.takeAll() == ["slow registered true true", "unawaited registered true true"])
            mayEnd.open()
            try worker.join()
            #expect(trace.elements.isEmpty)
            #expect(client.runGuarded() == .finished)
        }
        #expect(trace.elements == ["slow removed true", "unawaited removed true"])
    }

    @Test(
        "S15: a task that removes or invalidates a source goes on when the client has dropped it, and holds no thread")
    func inTask() async throws {
        let trace = Recorder<String>()
        let source = makeSource()
        let (worker, client) = (RunningLoop(), RunningLoop())
        addClient("client", to: source, on: client.loop, trace)
        for isLast in [false, true] {
            source.add(to: worker.loop)
            await trace.waitUntilCount(isLast ? 3 : 1)
            if isLast { try await source.invalidate() } else { try await source.remove(from: worker.loop) }
            #expect(trace.count == (isLast ? 4 : 2))
        }
        #expect(!source.isValid)
        #expect(Set(trace.elements) == ["client registered true true", "client removed true"])
        try await offThePool {
            try worker.stop()
            try client.stop()
        }
    }

    @Test("S15: a client not notified that the source came is not notified that it went, and not waited for")
    func notNotified() async throws {
        let trace = Recorder<String>()
        try await onLoop { client in
            let source = makeSource()
            addClient("client", to: source, on: client, limit: .seconds(Int64.max), trace)
            let worker = runOnThread {
                for _ in 0..<100 {
                    source.add(to: .current)
                    source.remove(from: .current)
                }
            }
            try worker.join()
            #expect(calloutCount(of: client) { client.runGuarded() } == 1)
        }
        #expect(trace.elements.isEmpty)
    }

    @Test("S15: when client and worker are one thread, the removal is reported at once")
    func oneThread() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let source = makeSource()
            addClient("client", to: source, on: loop, in: ["other"], limit: .seconds(Int64.max), trace)
            for _ in 0..<2 {
                source.add(to: loop)
                #expect(trace.elements.isEmpty)
                #expect(loop.runGuarded(mode: "other") == .finished)
                #expect(trace.takeAll() == ["client registered true true"])
                source.remove(from: loop)
                #expect(trace.takeAll() == ["client removed true"])
            }
            source.add(to: loop)
            #expect(loop.runGuarded(mode: "other") == .finished)
            #expect(trace.takeAll() == ["client registered true true"])
        }
        // The thread's end is the removal.
        #expect(trace.elements == ["client removed true"])
    }

    @Test("S15: a client may invalidate the source when it is notified of it")
    func invalidatedByClient() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let source = makeSource()
            source.addClient(
                on: loop,
                registered: { context in
                    trace.append("registered")
                    context.source.invalidate()
                    trace.append("invalidated")
                }, removed: { _ in trace.append("removed") })
            source.add(to: loop)
            #expect(loop.runGuarded() == .finished)
        }
        #expect(trace.elements == ["registered", "removed", "invalidated"])
    }

    @Test("S15: a client that leaves is not notified any more, and not waited for")
    func leaving() async throws {
        let trace = Recorder<String>()
        try await onLoop { client in
            let source = makeSource()
            let leaving = addClient("client", to: source, on: client, limit: .seconds(Int64.max), trace)
            let mayEnd = Gate("the worker's end")
            let worker = startWorker(source, mayEnd)
            #expect(trace.takeAll() == ["client registered true true"])
            mayEnd.open()
            while source.isValid { yieldThread() }
            // It is notified, and waited for, when it leaves.
            while client.state.withLock({ $0.requests.isEmpty }) { yieldThread() }
            leaving.leave()
            leaving.leave()
            try worker.join()
            #expect(calloutCount(of: client) { client.runGuarded() } == 0)
        }
        #expect(trace.elements.isEmpty)
    }

    @Test("S15: a client whose thread ends is not waited for, and is no longer a client")
    func clientEnds() async throws {
        let trace = Recorder<String>()
        let source = makeSource()
        let ended = try await onLoop { $0 }
        addClient("ended", to: source, on: ended, limit: .seconds(Int64.max), trace)
        let worker = try await onLoop { [self] client in
            addClient("ending", to: source, on: client, limit: .seconds(Int64.max), trace)
            let mayEnd = Gate("the worker's end")
            let worker = startWorker(source, mayEnd)
            #expect(trace.takeAll() == ["ending registered true true"])
            mayEnd.open()
            while source.isValid { yieldThread() }
            return worker
        }
        try await worker.join()
        #expect(trace.elements.isEmpty)
    }

    @Test("clients that come and go race the source: each one notified of it is notified of its end")
    func race() async throws {
        let (registered, removed) = (Counter("registrations"), Counter("removals"))
        try await besideLoop { client in
            for _ in 0..<30 {
                let source = Source { _, _ in }
                let threads = (0..<4).map { number in
                    runOnThread {
                        source.addClient(
                            on: client, registered: { _ in registered.increment() },
                            removed: { _ in removed.increment() })
                        source.add(to: .current, mode: number % 2 == 0 ? .default : .common)
                        if number == 3 { source.invalidate() }
                    }
                }
                for thread in threads { try thread.join() }
                try client.performAndWait(within: Watchdog.longTimeout) {}
            }
        }
        #expect(registered.value == removed.value)
    }
}

/// How many callouts a loop makes in a run that finishes.
private func calloutCount(of loop: ThreadRunLoop, in run: () -> RunLoopRunResult) -> Int {
    let tracer = RunLoopTracer()
    tracer.attach(to: loop)
    #expect(run() == .finished)
    return tracer.events.count { if case .calloutBegin = $0.kind { true } else { false } }
}
