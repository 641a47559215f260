// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Peers that write the packets of probes by hand. So a test decides when each step happens, and may say what is not
/// so.
@Suite("probes, and peers that write them by hand", .contract) struct HostileProbeTests {
    /// A probe of no wait, with the highest number.
    private static let probe = WaitProbe(start: WaitNumber(time: .max, secret: 5), round: 0)

    /// Calls `serve`, on another thread, with the connection of this thread's request, which was received; a connection
    /// to this thread's port with a request, which is in its queue; and the port. This thread waits meanwhile.
    ///
    /// - Returns: what the request met.
    private func waiting(
        _ bench: Bench, intercept: LocalPort.Interceptor? = nil,
        _ serve: @escaping @Sendable (_ asked: RawPeer, _ asking: RawPeer, MachPort) throws -> Void
    ) throws -> Result<MachMessage, PortError> {
        let port = MachPort(
            queueLimit: MachPort.defaultQueueLimit,
            handler: { _, message in try? message.reply(MachMessage(id: 7)) }, intercept: intercept)
        try port.schedule()
        let (right, thread) = try bench.rawListener { asked in
            #expect(try asked.next()?.kind == .message)
            let asking = try RawPeer(to: port, on: bench)
            try asking.send(MachMessage(id: 1), asks: 1)
            // It has waited for a while.
            #expect(try asked.nextOrProbe()?.kind == .probe)
            try serve(asked, asking, port)
        }
        let result = Result { () throws(PortError) in try right.ask(MachMessage(id: 2)) }
        while !thread.hasEnded { ThreadRunLoop.current.run(for: .milliseconds(1)) }
        try thread.join()
        port.invalidate()
        return result
    }

    /// Has the port's process read what was sent.
    private func knock(at port: MachPort, _ bench: Bench) throws {
        let peer = try RawPeer(to: port, on: bench)
        try peer.send(PacketHeader(kind: .credit, componentCount: 3, asks: 1))
        #expect(try peer.next()?.componentCount == 3)
        waitForIOThread()
    }

    private func send(_ probe: WaitProbe, over asking: RawPeer, at port: MachPort, _ bench: Bench) throws {
        try asking.send(PacketHeader(probe, about: 1))
        try knock(at: port, bench)
    }

    /// The next packet that is about the probe.
    private func next(about probe: WaitProbe, at peer: RawPeer) throws -> PacketHeader? {
        while let header = try peer.nextOrProbe() {
            if header.kind != .probe || header.probe == probe { return header }
        }
        return nil
    }

    @Test(
        "a probe is passed on with the request's own token, and answered when it is answered", arguments: [false, true])
    func passedOn(hasReturned: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let result = try waiting(bench) { asked, asking, port in
                try send(Self.probe, over: asking, at: port, bench)
                let question = try next(about: Self.probe, at: asked)
                #expect(question == PacketHeader(Self.probe, about: 1))
                // Once.
                try send(Self.probe, over: asking, at: port, bench)
                #expect(try asking.next() == PacketHeader(answering: Self.probe, about: 1, hasReturned: false))
                try asked.send(PacketHeader(answering: Self.probe, about: 1, hasReturned: hasReturned))
                #expect(try asking.next() == PacketHeader(answering: Self.probe, about: 1, hasReturned: hasReturned))
                try asked.send(MachMessage(id: 9), answers: 1)
                #expect(try asking.next()?.kind == .message)
            }
            #expect(try result.get().id == 9)
        }
    }

    @Test("a wait that has ended before the answer comes is no part of a circle: nothing is answered")
    func endedMeanwhile() async throws {
        try await onBench(over: .socket) { bench in
            let result = try waiting(bench) { asked, asking, port in
                try send(Self.probe, over: asking, at: port, bench)
                #expect(try next(about: Self.probe, at: asked) != nil)
                try asked.send(MachMessage(id: 9), answers: 1)
                try asked.send(PacketHeader(answering: Self.probe, about: 1, hasReturned: true))
                // Its thread serves the port again.
                #expect(try asking.next()?.kind == .message)
            }
            #expect(try result.get().id == 9)
        }
    }

    @Test("a probe with a lower number than the wait's is not passed on")
    func lower() async throws {
        try await onBench(over: .socket) { bench in
            let result = try waiting(bench) { asked, asking, port in
                let low = WaitProbe(start: WaitNumber(time: 1, secret: 5), round: 0)
                try send(low, over: asking, at: port, bench)
                try send(Self.probe, over: asking, at: port, bench)
                while let header = try asked.nextOrProbe(), header.probe != Self.probe { #expect(header.probe != low) }
                try asked.send(MachMessage(id: 9), answers: 1)
                #expect(try asking.next()?.kind == .message)
            }
            #expect(try result.get().id == 9)
        }
    }

    @Test(
        "a server that answers a probe falsely fails its own requester, which gives the request up; others are served")
    func falseAnswer() async throws {
        try await onBench(over: .socket) { bench in
            let probes = Recorder<PacketHeader>()
            let (right, thread) = try bench.rawListener { peer in
                #expect(try peer.next()?.kind == .message)
                let question = try #require(try peer.nextOrProbe())
                probes.append(question)
                // About what was not asked, of another wait, of another round; and then so that it counts.
                for other in [
                    Self.probe, WaitProbe(start: question.probe.start, round: question.probe.round &+ 1),
                    WaitProbe(
                        start: WaitNumber(time: question.probe.start.time, secret: 0), round: question.probe.round),
                ] {
                    try peer.send(PacketHeader(answering: other, about: 1, hasReturned: true))
                }
                // Not in a circle, the wait goes on.
                try peer.send(PacketHeader(answering: question.probe, about: 1, hasReturned: false))
                let again = try #require(try peer.nextOrProbe())
                #expect(again.kind == .probe && again.probe.start == question.probe.start)
                #expect(again.probe.round != question.probe.round, "it cannot be guessed")
                for _ in 0..<3 {
                    try peer.send(PacketHeader(answering: again.probe, about: 1, hasReturned: true))
                }
                let last = try peer.next()
                #expect(last?.kind == .abandoned && last?.asks == 1)
            }
            let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
            #expect(error?.code == .wouldDeadlock && error?.delivery == .unknown)
            try thread.join()
            #expect(probes.elements.map(\.asks) == [1])
            try bench.serving({ _, message in try? message.reply(MachMessage(id: 3)) }) { right, _, _ in
                let reply = try right.ask(MachMessage())
                #expect(reply.id == 3)
            }
        }
    }

    @Test("a wait of 10 s would be followed by six probes; one that was answered in time, by none")
    func counted() async throws {
        try await onBench(over: .socket) { bench in
            let (right, thread) = try bench.rawListener { peer in
                try peer.send(MachMessage(id: 1), answers: #require(try peer.next()).asks)
                let request = try #require(try peer.next())
                #expect(request.kind == .message && request.asks == 2)
                // The next ones come after the second and the fourth part of the time.
                var rounds: Set<Int32> = []
                for _ in 0..<3 { rounds.insert(try #require(try peer.nextOrProbe()).probe.round) }
                #expect(rounds.count == 3)
                try peer.send(MachMessage(id: 2), answers: 2)
                #expect(try peer.next() == nil)
            }
            #expect(try right.ask(MachMessage()).id == 1)
            let start = MonotonicInstant.now
            #expect(try right.ask(MachMessage()).id == 2)
            #expect(start.duration(to: .now) >= Tuning.timeUntilProbe * 7)
            _ = consume right
            try thread.join()
        }
    }

    @Test("probes about what was not asked, or is answered, cost others nothing")
    func unknownTokens() async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving({ _, message in try? message.reply(MachMessage(id: message.id)) }) { _, port, _ in
                let peer = try RawPeer(to: port, on: bench)
                for token in [UInt64(1), 2, .max] {
                    try peer.send(PacketHeader(Self.probe, about: token))
                }
                try peer.send(MachMessage(id: 5), asks: 1)
                #expect(try peer.next()?.messageID == 5)
                try peer.send(PacketHeader(Self.probe, about: 1))
                try peer.send(MachMessage(id: 6), asks: 2)
                #expect(try peer.next()?.messageID == 6)
            }
        }
    }

    @Test("of a flood of probes the newest is passed on, and the port's own work goes on")
    func flood() async throws {
        try await onBench(over: .socket) { bench in
            let result = try waiting(bench) { asked, asking, port in
                let count = 50 * UInt64(Tuning.probesPerRequest)
                for time in 0..<count {
                    let probe = WaitProbe(start: WaitNumber(time: .max - time, secret: time), round: 0)
                    try asking.send(PacketHeader(probe, about: 1))
                    if time % 16 == 0 { try knock(at: port, bench) }
                }
                // The newest is never lost.
                let last = WaitProbe(start: WaitNumber(time: .max - count, secret: 1), round: 0)
                try send(last, over: asking, at: port, bench)
                #expect(try next(about: last, at: asked)?.kind == .probe)
                try asked.send(MachMessage(id: 9), answers: 1)
                #expect(try asking.next()?.kind == .message)
            }
            #expect(try result.get().id == 9)
        }
    }

    @Test("a probe about a request that has not come is passed on, and answered; of very many the newest is not lost")
    func notSent() async throws {
        try await onBench(over: .socket) { bench in
            let result = try waiting(bench) { asked, asking, port in
                for token in UInt64(100)..<1_000 {
                    let probe = WaitProbe(start: WaitNumber(time: .max - 1, secret: token), round: 0)
                    try asking.send(PacketHeader(probe, about: token))
                    if token % 16 == 0 { try knock(at: port, bench) }
                }
                try asking.send(PacketHeader(Self.probe, about: 2))
                try knock(at: port, bench)
                #expect(try next(about: Self.probe, at: asked) == PacketHeader(Self.probe, about: 1))
                try asked.send(PacketHeader(answering: Self.probe, about: 1, hasReturned: false))
                let answer = try next(about: Self.probe, at: asking)
                #expect(answer == PacketHeader(answering: Self.probe, about: 2, hasReturned: false))
                // It comes, and is answered.
                try asked.send(MachMessage(id: 9), answers: 1)
                #expect(try asking.next()?.kind == .message)
                try asking.send(MachMessage(id: 5), asks: 2)
                #expect(try asking.next()?.answers == 2)
            }
            #expect(try result.get().id == 9)
        }
    }

    @Test("where code may answer a request before it is queued, only those that are queued are followed")
    func intercepted() async throws {
        try await onBench(over: .socket) { bench in
            let result = try waiting(bench, intercept: { _ in false }) { asked, asking, port in
                let early = WaitProbe(start: WaitNumber(time: .max, secret: 6), round: 0)
                try asking.send(PacketHeader(early, about: 2))
                try knock(at: port, bench)
                try send(Self.probe, over: asking, at: port, bench)
                while let header = try asked.nextOrProbe(), header.probe != Self.probe {
                    #expect(header.probe != early)
                }
                try asked.send(MachMessage(id: 9), answers: 1)
                #expect(try asking.next()?.kind == .message)
            }
            #expect(try result.get().id == 9)
        }
    }

    @Test("an answer from a client ends its connection")
    func answerFromClient() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let token = try peer.givenUpToken(at: port)
            try peer.send(PacketHeader(answering: Self.probe, about: token, hasReturned: true))
            port.localPort.receiveFromSockets()
            #expect(try peer.next()?.kind == .refused)
        }
    }

    @Test(
        "a probe from a server, or its answer about a token that was never used, ends the connection",
        arguments: [
            PacketHeader(probe, about: 1), PacketHeader(answering: probe, about: 2, hasReturned: true),
        ])
    func wrongFromServer(packet: PacketHeader) async throws {
        try await onBench(over: .socket) { bench in
            let (right, thread) = try bench.rawListener { peer in
                #expect(try peer.next()?.kind == .message)
                try peer.send(packet)
                #expect(try peer.next()?.kind == .refused)
            }
            let error = portError { () throws(PortError) in _ = try right.ask(MachMessage()) }
            #expect(error?.code == .malformedPacket)
            try thread.join()
        }
    }
}

extension RawPeer {
    /// As `next`, which skips probes.
    fileprivate func nextOrProbe() throws -> PacketHeader? { try nextPacket(skipping: [.ring])?.header }
}
