// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Assumptions of programs: loops", .ports) struct AssumptionsLoops {
    @Test("A20: a port has one source, which ends with it; afterwards there is none", arguments: Transport.allCases)
    func source(transport: Transport) async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            let local = try fixture.local()
            let source = try local.runLoopSource(order: 3)
            #expect(source.order == 3)
            #expect(try local.runLoopSource() === source)
            try local.schedule(in: "other")
            #expect(loop.contains(source, in: "other"))
            loop.add(source)
            let remote = try fixture.remote(over: transport)
            for mode in [RunLoopMode.default, "other"] { #expect(try remote.ask(1, "abc", mode: mode) == "cba") }
            loop.remove(source)
            loop.remove(source, from: "other")
            #expect(source.isValid)
            #expect(try local.runLoopSource() === source)
            source.invalidate()
            let second = try local.runLoopSource()
            #expect(second !== source)
            loop.add(second)
            #expect(try remote.ask(1, "abc", mode: .default) == "cba")
            local.invalidate()
            #expect(!second.isValid)
            #expect(failure { _ = try local.runLoopSource() }?.code == .invalidPort)
        }
    }

    @Test("A20: a source that is in no loop does not retain its port; one in a loop does")
    func sourceLifetime() async throws {
        try await withFixture { fixture in
            var local: LocalMessagePort? = try fixture.local()
            let source = try local?.runLoopSource()
            local = nil
            #expect(source?.isValid == false)
            let loop = ThreadRunLoop.current
            let retained = try fixture.local().runLoopSource()
            #expect(!retained.isValid)
            let other = try fixture.local()
            loop.add(try other.runLoopSource())
            other.unschedule()
            #expect(try other.runLoopSource().isValid)
            other.invalidate()
        }
    }

    @Test("A20: its source in a loop retains a bare port; a source that scheduling made ends outside of loops")
    func bareSource() async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            weak var gone: MachPort?
            let seen = Counter()
            func make() throws -> (RunLoopSource, SendRight) {
                let port = MachPort { _, _ in seen.increment() }
                gone = port
                let source = try port.runLoopSource()
                loop.add(source)
                loop.add(source, to: "other")
                return (source, port.makeSendRight())
            }
            let (source, right) = try make()
            loop.remove(source)
            try right.send(MachMessage(), within: longTimeout)
            #expect(
                loop.run(mode: "other", until: .after(longTimeout), returnAfterSourceHandled: true) == .handledSource)
            #expect(seen.value == 1)
            #expect(gone != nil)
            loop.remove(source, from: "other")
            #expect(gone == nil)
            #expect(!source.isValid)
            #expect(right.isDead)

            let port = MachPort()
            try port.schedule(on: loop)
            let first = try port.runLoopSource()
            #expect(loop.contains(first))
            port.unschedule(from: loop)
            #expect(!first.isValid)
            let second = try port.runLoopSource()
            #expect(second.isValid)
            port.invalidate()
        }
    }

    @Test(
        "A23: a port in the common modes is served in a mode that becomes common later", arguments: Transport.allCases)
    func common(transport: Transport) async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            let local = try fixture.local()
            try local.schedule(in: .common)
            let remote = try fixture.remote(over: transport)
            let early = failure { _ = try remote.request(MachMessage(), replyLimit: .milliseconds(1), mode: "late") }
            #expect(early?.code == .replyTimedOut)
            loop.addCommonMode("late")
            #expect(try remote.ask(1, "abc", mode: "late") == "cba")
            local.invalidate()
        }
    }

    @Test("A24: without its port a loop finishes at once; an observer does not keep it; a stop before the run ends it")
    func finished() async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            #expect(loop.run(for: longTimeout) == .finished)
            let observer = RunLoopObserver(activities: .all) { _, _ in }
            loop.add(observer)
            #expect(loop.run(for: longTimeout) == .finished)
            let local = try fixture.local { port, _ in
                port.invalidate()
                return nil
            }
            try local.schedule()
            try fixture.remote(over: .memory).send(MachMessage())
            #expect(loop.run(for: longTimeout) == .finished)
            loop.stop()  // CFRunLoop would lose it
            #expect(loop.run() == .stopped)
            #expect(loop.run() == .finished)
            observer.invalidate()
        }
    }

    @Test("A25: a loop with a port in its mode does not finish", arguments: Transport.allCases)
    func keepsAlive(transport: Transport) async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            let local = try fixture.local { _, message in
                if message.id == 2 { ThreadRunLoop.current.stop() }
                return nil
            }
            try local.schedule()
            let remote = try fixture.remote(over: transport)
            #expect(loop.run(for: .zero) == .timedOut)
            try remote.send(MachMessage(id: 1))
            try remote.send(MachMessage(id: 2))
            #expect(loop.run() == .stopped)
            #expect(loop.run(for: .milliseconds(1)) == .timedOut)
            local.unschedule()
            #expect(loop.run() == .finished)
            local.invalidate()
        }
    }

    @Test(
        "A26: a message to a port without a handler wakes the loop, and a run for one source returns",
        arguments: Transport.allCases)
    func withoutHandler(transport: Transport) async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            try port.schedule()
            let remote = try fixture.remote(over: transport)
            let sender = runOnThread { try remote.send(MachMessage(), sendLimit: longTimeout) }
            #expect(loop.run(until: .distantFuture, returnAfterSourceHandled: true) == .handledSource)
            try sender.join()
            #expect(port.queueCount == 0)
            port.invalidate()
        }
    }

    @Test("A27: a limit that has passed still sends when there is room", arguments: Transport.allCases)
    func pastLimit(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = try fixture.local(queueLimit: 1)
            let remote = try fixture.remote(over: transport)
            try remote.send(MachMessage(id: 1), sendLimit: .seconds(-1))
            local.invalidate()
        }
    }

    @Test(
        "A30: a timer that never fires keeps a loop going, beside a port and without one", arguments: Transport.allCases
    )
    func farTimer(transport: Transport) async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            for date in [MonotonicInstant.distantFuture, .after(.seconds(1e10))] {
                let fired = Counter()
                let timer = RunLoopTimer(fireDate: date) { _ in fired.increment() }
                loop.add(timer)
                #expect(loop.run(for: .milliseconds(1)) == .timedOut)
                let local = try fixture.local()
                try local.schedule()
                #expect(try fixture.remote(over: transport).ask(1, "abc", mode: .default) == "cba")
                local.invalidate()
                #expect(loop.run(for: .milliseconds(1)) == .timedOut)
                #expect(fired.value == 0)
                timer.invalidate()
                #expect(loop.run() == .finished)
            }
        }
    }

    @Test("client and server on one thread: a mode in which the port is served answers, the private one is refused")
    func oneThread() async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            try local.schedule()
            let remote = try fixture.remote(over: .memory)
            #expect(try remote.ask(1, "abc", mode: .default) == "cba")
            let error = failure { _ = try remote.ask(1) }
            #expect(error?.code == .wouldDeadlock)
            #expect(error?.cfStatus == -4)
            #expect(error?.delivery == .notSent)
            // Over a connection that is not known: the limit ends it.
            let other = try fixture.remote(over: .socket)
            #expect(try other.ask(1, "abc", mode: .default) == "cba")
            let late = failure { _ = try other.request(MachMessage(), replyLimit: .milliseconds(1)) }
            #expect(late?.code == .replyTimedOut)
            local.invalidate()
        }
    }

    @Test("a stop inside of a wait for a reply takes effect after it", arguments: Transport.allCases)
    func stop(transport: Transport) async throws {
        try await withFixture { fixture in
            let client = ThreadRunLoop.current
            let timer = RunLoopTimer(fireDate: .now) { _ in client.stop() }
            client.add(timer)
            try fixture.serving(over: transport) { _, message in
                client.stop()
                return message.bytes
            } _: { remote, _, _ in
                let reply = try remote.ask(1, "abc", mode: .default)
                #expect(reply == "abc")
                client.add(RunLoopSource {})
                #expect(client.run(for: longTimeout) == .stopped)
            }
        }
    }
}
