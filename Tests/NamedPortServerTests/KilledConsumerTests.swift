// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

#if PORT_FAULTS

@Suite("A consumer that dies while it is woken", .leakCheck(warmingUp: makeSpareDescriptor))
struct KilledConsumerTests {
    @Test("a request to a consumer killed between the check of its state and its wake-up fails as to a dead one")
    func killedBeforeWake() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let serve = ["serve", fixture.directory, "store"]
            try withPeer(serve, at: fixture, rings: "always", wait: "blocking", endsAs: .signalled(SIGKILL)) { server in
                try server.expect("ready")
                ThreadRunLoop.current.waitStrategy = .blocking
                let right = try fixture.names.lookUp("store")
                try #require(right.destination as? RemotePort).reached().useRings(.always)
                let id = server.processID
                let kill = SystemCallFaults.Rule(
                    .shutdown,
                    .precede {
                        Glibc.kill(id, SIGKILL)
                        var information = siginfo_t()
                        waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT)
                    })
                let (error, hits) = SystemCallFaults.with([kill]) {
                    // A request soon finds the consumer parked; how soon depends on the processors.
                    failure {
                        while MonotonicInstant.now < Watchdog.deadline {
                            _ = try right.request(MachMessage(id: 1, text: "abc"), replyLimit: longTimeout)
                        }
                    }
                }
                #expect(hits == 1)
                // The code depends on which notices the death first: the send, or the wait for the reply.
                #expect([.peerDied, .deadName].contains(error?.code))
                #expect(failure { try right.send(MachMessage(id: 1), within: .zero) } != nil)
            }
        }
    }
}

#endif
