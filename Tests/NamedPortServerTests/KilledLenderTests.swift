// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

// 10,000 kills: `PORT_MEMORY_KILLS=10000 swift test --filter KilledLenderTests`.
@Suite("Processes killed while they borrow or lend memory", .leakCheck(warmingUp: makeSpareDescriptor))
struct KilledLenderTests {
    /// How often a process is killed, for each of four kinds.
    private static let killCount = (sysEnvironment("PORT_MEMORY_KILLS").flatMap { Int($0) } ?? 200) / 4

    /// What the process has open and mapped before the first peer, and is to have after each.
    private struct Census {
        private let before: Set<String>
        private let exemption: String?

        // Memory of this name may come, and stay.
        init(but exemption: String? = nil) throws {
            waitForIOThread()
            self.exemption = exemption
            before = try Self.current(but: exemption)
        }

        private static func current(but exemption: String?) throws -> Set<String> {
            let all = try openDescriptors().union(mappedMemoryFiles())
            guard let exemption else { return all }
            return all.filter { !$0.contains("/memfd:\(exemption) ") }
        }

        func expectNothingLeft(_ comment: Comment) throws {
            waitForIOThread()
            let deadline = Watchdog.deadline
            while true {
                let now = try Self.current(but: exemption)
                if now == before { return }
                if .now >= deadline {
                    #expect(now.subtracting(before) == [] && before.subtracting(now) == [], comment)
                    return
                }
                sched_yield()
            }
        }
    }

    /// The memory in messages that is not as a peer has written it.
    private static func faults(_ messages: [MachMessage]) -> [Int32] {
        messages.filter { message in
            let byte = UInt8(truncatingIfNeeded: message.id)
            return message.memory.count != 1 || message.memory[0].copy().contains { $0 != byte }
        }.map(\.id)
    }

    @Test(
        "a borrower killed at any moment has returned everything, and what it had lent stays readable", .seeded,
        arguments: ["never", "always"])
    func borrower(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            var generator = Seed.generator()
            let census = try Census()
            for round in 0..<Self.killCount {
                let replies = Int.random(in: 0...3, using: &generator)
                let iterations = Int.random(in: 0...20_000, using: &generator)
                let killed = ProcessEnd.signalled(SIGKILL)
                let words = ["borrow", fixture.directory, "borrower"]
                try withReadyPeer(words, at: fixture, rings: rings, endsAs: killed) {
                    try Self.kill($0, at: fixture, rings, after: replies, iterations, "round \(round)")
                }
                try census.expectNothingLeft("round \(round)")
            }
        }
    }

    /// Lends memory to a process until that is killed.
    private static func kill(
        _ peer: ChildProcess, at fixture: NameFixture, _ rings: String, after replies: Int, _ iterations: Int,
        _ comment: Comment
    ) throws {
        let (pool, received) = (MemoryPool(), Recorder<MachMessage>("replies"))
        do {
            let right = try fixture.names.lookUp("borrower")
            try #require(right.destination as? RemotePort).reached().useRings(
                try #require(RingPolicy(rawValue: rings)))
            let client = runOnThread { () -> PortError.Code in
                var number: Int32 = 0
                while true {
                    number += 1
                    do throws(PortError) {
                        let memory = try pool.loan([1, 5000, 20_000][Int(number) % 3]).freeze()
                        if number % 4 != 0 {
                            try right.send(MachMessage(id: number, memory: memory), within: longTimeout)
                        } else {
                            received.append(
                                try right.request(
                                    MachMessage(id: number, memory: memory), sendLimit: longTimeout,
                                    replyLimit: longTimeout))
                        }
                    } catch {
                        return error.code
                    }
                }
            }
            received.waitUntilCount(replies)
            spin(iterations)
            try peer.killAndReap()
            #expect([.peerDied, .deadName].contains(try client.join()), comment)
            #expect(right.isDead, comment)
        }
        // The kernel has closed what the process had.
        expectSoon(comment) { pool.lentByteCount == 0 }
        pool.trim()
        #expect(pool.reservedByteCount == 0, comment)
        #expect(faults(received.takeAll()) == [], comment)
    }

    @Test(
        "what a lender had sent before it was killed at any moment is read, and stays readable", .seeded,
        arguments: ["never", "always"])
    func lender(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let received = Recorder<MachMessage>("memory")
            let local = try LocalMessagePort(name: "lender", nameServer: fixture.names) { local, message in
                received.append(message)
                return nil
            }
            try withLoopThread { loop in
                try local.schedule(on: loop)
                var (generator, seen) = (Seed.generator(stream: 1), 0)
                // The port makes it for the first client that asks for slots, which not each lives to do.
                let census = try Census(but: "port-grants")
                for round in 0..<Self.killCount {
                    let count = Int.random(in: 1...20, using: &generator)
                    let iterations = Int.random(in: 0...20_000, using: &generator)
                    let words = ["lend", fixture.directory, "lender"]
                    try withPeer(words, at: fixture, rings: rings, endsAs: .signalled(SIGKILL)) { peer in
                        received.waitUntilCount(seen + count)
                        spin(iterations)
                        try peer.killAndReap()
                        expectSoon("round \(round): connections") { local.port.localPort.connectionCount == 0 }
                    }
                    // All that came before it is handled before it.
                    try local.port.makeSendRight().send(MachMessage(id: 0), within: longTimeout)
                    expectSoon("round \(round): the last message") { received.elements.last?.id == 0 }
                    seen += Self.check(received.takeAll().dropLast(), "round \(round)") + 1
                    try census.expectNothingLeft("round \(round)")
                }
                local.invalidate()
            }
        }
    }

    /// Checks what a killed process had sent, and releases it.
    ///
    /// - Returns: how many messages there were.
    private static func check(_ messages: [MachMessage], _ comment: Comment) -> Int {
        #expect(messages.map(\.id) == Array(1...Int32(messages.count)), comment)
        #expect(faults(messages) == [], comment)
        return messages.count
    }
}
