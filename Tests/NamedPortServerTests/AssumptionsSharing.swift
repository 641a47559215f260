// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Assumptions of programs: one object, many threads", .ports) struct AssumptionsSharing {
    @Test(
        "A16: threads that share one object each get their own replies, in every mode; none is stranded",
        arguments: Transport.allCases)
    func inProcess(transport: Transport) async throws {
        try await withFixture { fixture in
            try fixture.serving(over: transport) { remote, _, _ in try Self.shareOut(remote, requests: 150) }
        }
    }

    @Test("A16: between processes too")
    func betweenProcesses() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                try Self.shareOut(RemoteMessagePort.shared(name: "server", nameServer: fixture.names), requests: 150)
            }
        }
    }

    /// A thread that waits in the private mode, one in the default mode, one in a mode of its own, one that alternates.
    private static func shareOut(_ remote: RemoteMessagePort, requests: Int) throws {
        let modes: [[RunLoopMode]] = [[.portReply], [.default], ["own"], [.portReply, .default]]
        let threads = modes.enumerated().map { number, modes in
            runOnThread {
                for round in 0..<requests {
                    let reply = try remote.ask(Act.reverse, "\(number).\(round)", mode: modes[round % modes.count])
                    if String(reply.reversed()) != "\(number).\(round)" { return "\(number).\(round) got \(reply)" }
                    // Some give up at once: their replies come late, and go to no request.
                    if round % 10 == 0 {
                        _ = failure { try remote.request(MachMessage(id: Act.reverse), replyLimit: .zero) }
                    }
                }
                return "all"
            }
        }
        #expect(try threads.map { try $0.join() } == ["all", "all", "all", "all"])
    }
}

#if PORT_FAULTS
@Suite("Assumptions of programs: what a probe costs", .ports) struct AssumptionsProbes {
    private func total(_ calls: [SystemCall: Int]) -> Int { calls.values.reduce(0, +) }

    @Test("A15: checking whether a server is there costs a few system calls, leaves nothing open, and never waits")
    func cost() async throws {
        try await withFixture { fixture in
            func probe() -> (isThere: Bool, calls: [SystemCall: Int]) {
                let (result, calls) = SystemCallFaults.counting {
                    (try? RemoteMessagePort.shared(name: "server", nameServer: fixture.names)) != nil
                }
                return (result, calls)
            }
            let absent = probe()
            #expect(!absent.isThere)
            // The directory of declared names is opened, too.
            #expect(total(absent.calls) == 7, "\(absent.calls)")
            try withServer("server", at: fixture) { server in
                let first = probe()
                #expect(first.isThere)
                #expect(total(first.calls) == 12, "\(first.calls)")
                expectNoNewDescriptors { for _ in 0..<20 { #expect(probe().isThere) } }
                let retained = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                let again = probe()
                #expect(total(again.calls) == 9, "\(again.calls)")
                #expect(retained.isValid)
                // A stopped server still exists.
                server.pause()
                #expect(probe().isThere)
                server.resume()
            }
            #expect(!probe().isThere)
            #expect(probe().calls == absent.calls)
        }
    }
}
#endif
