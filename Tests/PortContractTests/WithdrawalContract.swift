// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import TestSupport
import Testing

@Suite("withdrawn notices", .contract) struct WithdrawalContract {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case deadName, room, noSenders

        var testDescription: String { rawValue }

        func ask(
            _ right: SendRight, _ port: MachPort, on loop: ThreadRunLoop, _ handler: @escaping @Sendable () -> Void
        ) throws -> NoticeRequest {
            switch self {
            case .deadName: try right.notifyWhenDead(on: loop, handler)
            case .room: try right.notifyWhenSendPossible(on: loop) { _ in handler() }
            case .noSenders: try port.notifyWhenNoSenders(on: loop, handler)
            }
        }
    }

    @Test("a withdrawn notice keeps nothing and is never told", arguments: TestTransport.allCases, Kind.allCases)
    func withdrawn(over transport: TestTransport, kind: Kind) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 1)
            let (loop, told, idle) = (ThreadRunLoop.current, Counter("notices"), RunLoopSource {})
            loop.add(idle)
            do {
                let right = try bench.right(to: port)
                let count = try right.fill(bytes: 3000)
                // What the loop needs to watch for anything it keeps.
                #expect(try kind.ask(right, port, on: loop) { told.increment() }.cancel())
                try expectNoNewDescriptors {
                    weak var kept: Counter?
                    let request = try asked(kind, right, port, on: loop, told, &kept)
                    #expect(kept != nil)
                    #expect(request.cancel())
                    #expect(request.cancel())
                    #expect(kept == nil)
                }
                for id in 0..<count { #expect(try port.next().id == id) }
            }
            _ = try port.tryReceive()
            loop.run(for: .zero)
            port.invalidate()
            loop.run(for: .zero)
            idle.invalidate()
            #expect(told.value == 0)
        }
    }

    private func asked(
        _ kind: Kind, _ right: SendRight, _ port: MachPort, on loop: ThreadRunLoop, _ told: Counter,
        _ kept: inout Counter?
    ) throws -> NoticeRequest {
        let held = Counter("what a handler holds")
        kept = held
        return try kind.ask(right, port, on: loop) {
            held.increment()
            told.increment()
        }
    }

    @Test("a notice can be withdrawn until its handler is called", arguments: Kind.allCases)
    func late(kind: Kind) async throws {
        try await onBench(over: .memory) { bench in
            let (loop, told) = (ThreadRunLoop.current, Counter("notices"))
            let idle = RunLoopSource {}
            loop.add(idle)
            for isWithdrawn in [true, false] {
                let port = try bench.port(queueLimit: 1)
                let request: NoticeRequest
                do {
                    let right = port.makeSendRight()
                    _ = try right.fill()
                    request = try kind.ask(right, port, on: loop) { told.increment() }
                    _ = try port.next()
                }
                if kind == .deadName { port.invalidate() }
                // It was told: its handler is in the loop.
                if isWithdrawn { #expect(request.cancel()) }
                loop.run(for: .zero)
                #expect(told.value == (isWithdrawn ? 0 : 1))
                #expect(request.cancel() == isWithdrawn)
            }
            idle.invalidate()
        }
    }

    @Test("a connection that was kept for a withdrawn notice alone ends")
    func connection() async throws {
        try await onBench(over: .socket) { bench in
            let (port, worker) = (try bench.port(), Worker())
            let request = try bench.right(to: port).notifyWhenDead(on: worker.loop) {
                Issue.record("a withdrawn notice was told")
            }
            _ = try port.tryReceive()
            #expect(port.core.connectionCount == 1)
            #expect(request.cancel())
            _ = try port.tryReceive()
            #expect(port.core.connectionCount == 0)
            try worker.end()
        }
    }
}
