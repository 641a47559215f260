// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import TestSupport
import Testing

@Suite("withdrawn notices", .contract) struct WithdrawnNoticeContract {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case deadName, room, noSenders

        var testDescription: String { rawValue }

        func ask(
            _ right: SendRight, _ port: MachPort, on loop: ThreadRunLoop, _ handler: @escaping @Sendable () -> Void
        ) throws -> NoticeRequest {
            switch self {
            case .deadName: try right.notifyWhenDead(on: loop) { _ in handler() }
            case .room: try right.notifyWhenSendPossible(on: loop) { _ in handler() }
            case .noSenders: try port.notifyWhenNoSenders(on: loop, handler)
            }
        }
    }

    @Test("a withdrawn notice retains nothing and never comes", arguments: TestTransport.inProcess, Kind.allCases)
    func withdrawn(over transport: TestTransport, kind: Kind) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 1)
            let (loop, notices, idle) = (ThreadRunLoop.current, Counter("notices"), RunLoopSource {})
            loop.add(idle)
            do {
                let right = try bench.right(to: port)
                let count = try right.fill(bytes: 3000)
                // The loop makes now what it needs, and keeps, to watch descriptors.
                #expect(try kind.ask(right, port, on: loop) { notices.increment() }.cancel())
                try expectNoNewDescriptors {
                    weak var retained: Counter?
                    let request = try asked(kind, right, port, on: loop, notices, &retained)
                    #expect(retained != nil)
                    #expect(request.cancel())
                    #expect(request.cancel())
                    #expect(retained == nil)
                }
                for id in 0..<count { #expect(try port.next().id == id) }
            }
            _ = try port.tryReceive()
            loop.run(for: .zero)
            port.invalidate()
            loop.run(for: .zero)
            idle.invalidate()
            #expect(notices.value == 0)
        }
    }

    @Test("a withdrawn notice about a port of the far side is never delivered", arguments: TestTransport.allCases)
    func withdrawnOfFarPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, count) = try bench.farFull()
            let (worker, notices) = (Worker(), Counter("notices"))
            // The loop makes now what it needs, and keeps, to watch descriptors.
            #expect(try right.notifyWhenDead(on: worker.loop) { _ in notices.increment() }.cancel())
            // An offer of rings is answered now, if it can be read; the answer is read, and what was offered is closed.
            try port.receiveFromSockets()
            waitForIOThread()
            #expect(!right.isDead)
            try expectNoNewDescriptors {
                let death = try right.notifyWhenDead(on: worker.loop) { _ in notices.increment() }
                let room = try right.notifyWhenSendPossible(on: worker.loop) { _ in notices.increment() }
                #expect(death.cancel() && room.cancel())
                // The pass in which the worker has checked what was added may still be running.
                for _ in 0..<2 { try worker.perform {} }
            }
            for id in 0..<count { #expect(try port.next().id == id) }
            try port.invalidate()
            #expect(right.isDead)
            try worker.perform {}
            try worker.end()
            #expect(notices.value == 0)
        }
    }

    private func asked(
        _ kind: Kind, _ right: SendRight, _ port: MachPort, on loop: ThreadRunLoop, _ notices: Counter,
        _ retained: inout Counter?
    ) throws -> NoticeRequest {
        let held = Counter("what a handler holds")
        retained = held
        return try kind.ask(right, port, on: loop) {
            held.increment()
            notices.increment()
        }
    }

    @Test("a notice can be withdrawn until its handler is called", arguments: Kind.allCases)
    func late(kind: Kind) async throws {
        try await onBench(over: .memory) { bench in
            let (loop, notices) = (ThreadRunLoop.current, Counter("notices"))
            let idle = RunLoopSource {}
            loop.add(idle)
            for isWithdrawn in [true, false] {
                let port = try bench.port(queueLimit: 1)
                let request: NoticeRequest
                do {
                    let right = port.makeSendRight()
                    _ = try right.fill()
                    request = try kind.ask(right, port, on: loop) { notices.increment() }
                    _ = try port.next()
                }
                if kind == .deadName { port.invalidate() }
                // It was notified: its handler is in the loop.
                if isWithdrawn { #expect(request.cancel()) }
                loop.run(for: .zero)
                #expect(notices.value == (isWithdrawn ? 0 : 1))
                #expect(request.cancel() == isWithdrawn)
            }
            idle.invalidate()
        }
    }

    @Test("a connection that was retained for a withdrawn notice alone ends", arguments: TestTransport.connected)
    func connection(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, worker) = (try bench.farPort(), Worker())
            let request = try bench.right(to: port).notifyWhenDead(on: worker.loop) { _ in
                Issue.record("a withdrawn notice was delivered")
            }
            _ = try port.tryReceive()
            #expect(try port.connectionCount == 1)
            #expect(request.cancel())
            _ = try port.tryReceive()
            #expect(try port.connectionCount == 0)
            try worker.end()
        }
    }
}
