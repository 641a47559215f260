// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// The system calls of one process for receiving and replying: refused one after the other.
@Suite("Servers when the system refuses", .leakCheck(warmingUp: makeSpareDescriptor))
struct FaultyServerTests {
    @Test(
        "a server refused at each call in turn: each request is answered or fails, and is handled once, 100 times",
        arguments: ["never", "always"])
    func server(rings: String) async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            try withReadyPeer(["pace", fixture.directory, "name"], at: fixture, rings: rings) { client in
                let faulty = FaultyDesk(port: port, client: client)
                try faulty.serve("before", [])
                let calls = try faulty.serve("count", []).calls
                let plans = FaultPlan.all(calls, atLeast: 100)
                expectNoConnections(to: port, "before")
                waitForIOThread()
                let descriptors = openDescriptors()
                for (round, plan) in plans.enumerated() {
                    let result = try faulty.serve("\(round)", plan.rules)
                    if case .fail(EINTR) = plan.fault { #expect(result.answer == "reply \(round)", "\(plan)") }
                    expectNoConnections(to: port, "\(plan)")
                    ReservedDescriptor.shared.reserve()
                    expectSoon("\(plan)") { openDescriptors() == descriptors }
                }
            }
            port.invalidate()
        }
    }
}

/// Waits until the port has no connection: the receiving thread notices that a client has gone.
private func expectNoConnections(to port: MachPort, _ comment: Comment) {
    expectSoon(comment) {
        _ = try? port.tryReceive()
        return port.localPort.connectionCount == 0
    }
}

/// Serves the requests of another process, under faults.
private struct FaultyDesk {
    let port: MachPort
    let client: ChildProcess

    /// Serves one request of that text, and then others with the text "end" until one of those was answered.
    ///
    /// - Returns: the client's result of the first, and the calls that the server made, when there are no rules.
    @discardableResult
    func serve(_ text: String, _ rules: [SystemCallFaults.Rule]) throws
        -> (answer: String, calls: [SystemCall: Int])
    {
        let (port, end) = (port, Gate("the end of the round"))
        let server = runOnThread {
            if rules.isEmpty { return SystemCallFaults.counting { Self.answer(port, until: end) } }
            return (SystemCallFaults.with(rules) { Self.answer(port, until: end) }.result, [:])
        }
        let answer = try ask(text)
        while try ask("end") != "reply end" {}
        end.open()
        // Wakes the server, which is waiting for a message.
        try port.makeSendRight().send(MachMessage(id: Act.note, text: "wake"), within: .zero)
        let (handled, calls) = try server.join()
        switch answer.split(separator: " ").last.map(String.init) {
        case "notSent", "unread": #expect(handled[text] == nil, "\(rules): \(answer)")
        case "unknown": #expect(handled[text, default: 1] == 1, "\(rules): \(answer)")
        case "read": #expect(handled[text] == 1, "\(rules): \(answer)")
        default:
            #expect(answer == "reply \(text)", "\(rules)")
            #expect(handled[text] == 1, "\(rules)")
        }
        return (answer, calls)
    }

    private func ask(_ text: String) throws -> String {
        try client.write(text + "\n")
        return try #require(try client.nextLine())
    }

    /// Answers until the gate is open; returns how often it got each text.
    private static func answer(_ port: MachPort, until end: Gate) -> [String: Int] {
        var handled: [String: Int] = [:]
        while !end.isOpen {
            do throws(PortError) {
                guard let message = try port.receive(within: longTimeout) else { break }
                handled[message.text, default: 0] += 1
                if message.expectsReply { try message.reply(MachMessage(id: message.id, bytes: message.bytes)) }
            } catch {
                #expect([.descriptorLimit, .systemCallFailed, .deadName, .sendTimedOut].contains(error.code))
            }
        }
        return handled
    }
}

#endif
