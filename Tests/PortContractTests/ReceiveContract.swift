// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import TestSupport
import Testing

@Suite("receiving", .contract) struct ReceiveContract {
    @Test("receive and tryReceive give nil when nothing is there", arguments: TestTransport.withName)
    func nothing(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            #expect(try port.tryReceive()?.id == nil)
            #expect(try port.receive(within: .zero)?.id == nil)
            #expect(try port.receive(within: .seconds(-1))?.id == nil)
            #expect(try port.receive(within: .milliseconds(1))?.id == nil)
            try sender.send(MachMessage(id: 1))
            #expect(try port.receive(within: .zero)?.id == 1)
        }
    }

    @Test("a blocked receiver wakes when a message comes", arguments: TestTransport.withName)
    func wakes(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            let waits = Gate("the receiver waits")
            let receiver = runOnThread {
                waitsNow(in: .portReceive, waits)
                return try port.next().id
            }
            waits.wait()
            try sender.send(MachMessage(id: 3))
            #expect(try receiver.join() == 3)
        }
    }

    @Test("several blocked receivers share the messages, each of which comes once", arguments: TestTransport.withName)
    func several(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            let ids = Recorder<Int32>()
            let receivers = (0..<3).map { _ in
                runOnThread {
                    while true {
                        let message = try port.next()
                        if message.id < 0 { return }
                        ids.append(message.id)
                    }
                }
            }
            try sender.beginSending(600)
            ids.waitUntilCount(600)
            for _ in receivers { try sender.send(MachMessage(id: -1)) }
            for receiver in receivers { try receiver.join() }
            #expect(ids.elements.sorted() == Array(0..<600))
        }
    }

    @Test("the end of a port wakes its blocked receivers with invalidPort", arguments: TestTransport.inProcess)
    func portEnds(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let receivers = (0..<2).map { _ in
                let waits = Gate("a receiver waits")
                let thread = runOnThread {
                    waitsNow(in: .portReceive, waits)
                    return portError { () throws(PortError) in _ = try port.receive(within: longTimeout) }?.code
                }
                waits.wait()
                return thread
            }
            port.invalidate()
            for receiver in receivers { #expect(try receiver.join() == .invalidPort) }
        }
    }

    @Test("an invalid port receives nothing, is not scheduled, and says so", arguments: TestTransport.inProcess)
    func invalid(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            try bench.right(to: port).send(MachMessage())
            port.invalidate()
            port.invalidate()
            #expect(!port.isValid)
            #expect(port.queueCount == 0)
            #expect(portError { () throws(PortError) in _ = try port.tryReceive() }?.code == .invalidPort)
            #expect(
                portError { () throws(PortError) in _ = try port.receive(within: longTimeout) }?.code == .invalidPort)
            #expect(portError { () throws(PortError) in try port.schedule() }?.code == .invalidPort)
        }
    }

    @Test("a receiver's wait lets nothing else of its loop run", arguments: TestTransport.withName)
    func privateMode(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.port(), try bench.port { _, _ in Issue.record("a handler ran") })
            try other.schedule(in: .common)
            try bench.right(to: other).send(MachMessage())
            let sender = try bench.farSender(to: port)
            try sender.beginSending(1)
            #expect(try port.next().id == 0)
            #expect(try sender.lines(1) == ["sent"])
            other.invalidate()
        }
    }

    @Test(
        "rights and receivers on many threads: nothing is lost, sent = received + refused", .seeded,
        arguments: TestTransport.inProcess)
    func stress(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            for round in 0..<UInt64(rounds(8)) { try Stress(bench, round).run() }
        }
    }

    @Test("rights on many threads: the same with a port of the far side", .seeded, arguments: TestTransport.allCases)
    func stressOfFarPort(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            for round in UInt64(0)..<4 { try FarStress(bench: bench, round: round).run() }
        }
    }
}

/// Opens a gate when the calling thread's loop is about to wait in a mode.
func waitsNow(in mode: RunLoopMode, _ gate: Gate) {
    let observer = RunLoopObserver(activities: .beforeWaiting, repeats: false) { _, _ in gate.open() }
    ThreadRunLoop.current.add(observer, to: mode)
}
