// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Rights to a name", .shared) struct ReconnectingTests {
    @Test("an object for a name outlives its server's kill, exit and end, and says why each has ended")
    func servers() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let ends: [(ProcessEnd, Int32, PortEndReason)] = [
                (.signalled(SIGKILL), Act.die, .killed(signal: SIGKILL)),
                (.exited(5), Act.exit, .exited(status: 5)),
                (.exited(0), Act.leave, .invalidated),
            ]
            let port = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
            #expect(port.isValid && port.state() == .interrupted(nil))
            try withLoopThread { loop in
                for (end, act, kernelsReason) in ends {
                    let reason = try reported(kernelsReason)
                    try withServer("name", at: fixture, endsAs: end) { server in
                        #expect(try port.ask(Act.process) == "\(server.processID)")
                        #expect(port.state() == .connected)
                        #expect(try port.right.owner().processID == server.processID)
                        let states = Recorder<SendRight.State>("states")
                        try port.right.notifyWhenStateChanges(from: .connected, on: loop) { states.append($0) }
                        let error = failure { _ = try port.ask(act, "5") }
                        #expect(error?.code == (act == Act.leave ? nil : .peerDied))
                        #expect(error?.delivery == (act == Act.leave ? nil : .unknown))
                        #expect(states.waitUntilCount(1) == [.interrupted(reason)])
                        #expect(port.isValid && port.state() == .interrupted(reason))
                    }
                }
            }
            let local = try fixture.local()
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(try port.ask(Act.reverse, "on") == "no")
                local.invalidate()
            }
            port.invalidate()
            #expect(!port.isValid && port.state() == .invalid(.invalidatedHere))
            #expect(failure { _ = try port.ask(Act.reverse) }?.code == .invalidPort)
        }
    }

    @Test("a sender waits for the next port, and not beyond its limit", arguments: [Duration.zero, .milliseconds(20)])
    func limits(limit: Duration) async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            for round in 0..<2 {
                let start = MonotonicInstant.now
                let errors = [
                    failure { try right.send(MachMessage(), within: limit) },
                    failure { _ = try right.request(MachMessage(), sendLimit: limit) },
                    failure { _ = try right.request(MachMessage(), sendLimit: limit, isIdempotent: true) },
                    failure { _ = try right.trySend(MachMessage()) },
                ]
                #expect(start.duration(to: .now) >= limit * 3, "round \(round)")
                for error in errors { #expect(error?.code == .nameWaitTimedOut && error?.delivery == .notSent) }
                #expect(errors[0]?.description.contains("\"name\"") == true)
                // In the second round a port has had the name.
                let local = try fixture.local()
                try right.send(MachMessage(id: 7), within: longTimeout)
                #expect(try local.port.receive(within: .zero)?.id == 7)
                local.invalidate()
            }
            #expect(failure { _ = try fixture.names.makeSendRight(reconnectingTo: "") }?.code == .nameEmpty)
        }
    }

    @Test("what waits is sent once, when the name comes, without polling meanwhile")
    func waits() async throws {
        try await withFixture { fixture in
            let port = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
            let senders = (0..<3).map { number in
                runOnThread { try port.send(MachMessage(id: Int32(number)), sendLimit: longTimeout) }
            }
            let loop = try IOThread.loop()
            let (passes, sleeps, alarm) = (loop.passCount, loop.waitCounts.sleeps, Gate("50 ms"))
            let timer = RunLoopTimer(after: .milliseconds(50)) { _ in alarm.open() }
            loop.add(timer)
            alarm.wait()
            // A loop that spins polls the kernel without a pass.
            #expect(loop.passCount - passes <= 20 && loop.waitCounts.sleeps - sleeps <= 20)
            let local = try fixture.local()
            for sender in senders { try sender.join() }
            let received = try (0..<3).map { _ in try local.port.receive(within: .zero)?.id }
            #expect(Set(received.compactMap { $0 }) == [0, 1, 2])
            #expect(try local.port.receive(within: .zero) == nil)
            port.invalidate()
            local.invalidate()
        }
    }

    @Test("the end of the object ends what waits, and a message to it afterwards")
    func invalidate() async throws {
        try await withFixture { fixture in
            try withLoopThread { loop in
                let port = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
                let (reasons, states) = (Recorder<PortEndReason>("reasons"), Recorder<SendRight.State>("states"))
                try port.setInvalidationHandler(on: loop) { reasons.append($0) }
                try port.right.notifyWhenDead(on: loop) { reasons.append($0) }
                try port.right.notifyWhenStateChanges(from: .interrupted(nil), on: loop) { states.append($0) }
                let withdrawn = try port.right.notifyWhenStateChanges(from: .interrupted(nil), on: loop) { _ in
                    Issue.record("a withdrawn notice")
                }
                #expect(withdrawn.cancel())
                let waiting = runOnThread { failure { _ = try port.ask(Act.reverse) }?.code }
                port.invalidate()
                #expect(try waiting.join() == .invalidPort)
                #expect(reasons.waitUntilCount(2) == [.invalidatedHere, .invalidatedHere])
                #expect(states.waitUntilCount(1) == [.invalid(.invalidatedHere)])
                #expect(port.right.isDead)
                #expect(failure { try port.right.send(MachMessage(), within: longTimeout) }?.code == .invalidPort)
            }
        }
    }

    @Test("a notice of a state is delivered for each interruption, and when the right goes on")
    func notices() async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                var state = SendRight.State.interrupted(nil)
                for _ in 0..<20 {
                    let states = Recorder<SendRight.State>("states")
                    try right.notifyWhenStateChanges(from: state, on: loop) { states.append($0) }
                    let local = try fixture.local()
                    #expect(states.waitUntilCount(1) == [.connected])
                    try right.notifyWhenStateChanges(from: .connected, on: loop) { states.append($0) }
                    local.invalidate()
                    state = .interrupted(.invalidated)
                    #expect(states.waitUntilCount(2).last == state)
                    #expect(right.state() == state)
                }
            }
        }
    }

    @Test("a port that refuses this process ends the right for good")
    func refused() async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withReadyPeer(
                ["policy", "users:4294967294", "serve", fixture.directory, "name"], at: fixture
            ) { _ in
                try withLoopThread { loop in
                    let reasons = Recorder<PortEndReason>("reasons")
                    try right.notifyWhenDead(on: loop) { reasons.append($0) }
                    #expect(failure { _ = try right.request(MachMessage()) }?.code == .peerRefused)
                    #expect(reasons.waitUntilCount(1) == [.refused(.peerRefused)])
                    #expect(right.state() == .invalid(.refused(.peerRefused)))
                    #expect(failure { _ = try right.request(MachMessage()) }?.code == .peerRefused)
                }
            }
        }
    }

    @Test("room is reported when the name comes, and a right that is sent on leads to the port of that moment")
    func forwarding() async throws {
        try await withFixture { fixture in
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            try withLoopThread { loop in
                let room = Recorder<SendPossibility>("room")
                try right.notifyWhenSendPossible(on: loop) { room.append($0) }
                let local = try fixture.local()
                #expect(room.waitUntilCount(1) == [.possible])
                #expect(try right.trySend(MachMessage(id: 1)))
                try right.notifyWhenSendPossible(on: loop) { room.append($0) }
                #expect(room.waitUntilCount(2).last == .possible)
                #expect(try right.destination.address() == local.port.makeSendRight().destination.address())
                try right.send(MachMessage(id: 2), confirming: .queued)
                local.invalidate()
            }
        }
    }

    #if PORT_FAULTS
    @Test("without a directory watch a sender gets watchLimit; with an interval it finds the port by scans")
    func watchLimit() async throws {
        try await withFixture { fixture in
            let rule = SystemCallFaults.Rule(.inotify_init, .fail(EMFILE), times: .max)
            let right = try fixture.names.makeSendRight(reconnectingTo: "name")
            let error = SystemCallFaults.with([rule]) {
                failure { try right.send(MachMessage(), within: longTimeout) }
            }.result
            #expect(error?.code == .watchLimit && error?.delivery == .notSent)
            #expect(right.state() == .interrupted(nil))
            fixture.names.lookInterval = .milliseconds(2)
            let sender = runOnThread {
                SystemCallFaults.with([rule]) { failure { try right.send(MachMessage(), within: longTimeout) } }.result
            }
            let local = try fixture.local()
            #expect(try sender.join() == nil)
            #expect(try local.port.receive(within: .zero)?.id == 0)
            local.invalidate()
        }
    }
    #endif

    @Test("in a forked child nothing works and nothing hangs, and the parent's right goes on")
    func forked() async throws {
        try await withFixture { fixture in
            let port = try RemoteMessagePort(reconnectingTo: "name", nameServer: fixture.names)
            let local = try fixture.local()
            try port.send(MachMessage(id: 1))
            let child = try forking {
                var failures: [String] = []
                if failure({ try port.send(MachMessage()) })?.code != .forkedProcess { failures.append("send") }
                if failure({ _ = try port.right.request(MachMessage()) })?.code != .forkedProcess {
                    failures.append("request")
                }
                if port.isValid || port.state() != .invalid(.unknown) { failures.append("state") }
                port.invalidate()
                return failures
            }
            #expect(exitStatus(of: child) == 0)
            try port.send(MachMessage(id: 2))
            #expect(try (0..<2).map { _ in try local.port.receive(within: .zero)?.id } == [1, 2])
            local.invalidate()
        }
    }
}
