// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

// Three processes: the old owner, the new one, and this client of theirs. 10,000 kills:
// `PORT_MOVE_KILLS=10000 swift test --filter MovedPortTests.killedAnywhere`.
@Suite("Ports that move to another process", .leakCheck(warmingUp: makeSpareDescriptor))
struct MovedPortTests {
    /// How often a process is killed, for each of four kinds.
    private static let killCount = (sysEnvironment("PORT_MOVE_KILLS").flatMap { Int($0) } ?? 200) / 4

    @Test(
        "the new owner has the queue and the clients of the old one, which may end, and new clients see the new one",
        arguments: ["never", "always"])
    func moves(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            try Self.withOwners(at: fixture, rings: rings) { old, new, right in
                for number in 0..<3 { try right.send(MachMessage(text: "\(number)"), within: longTimeout) }
                let requester = runOnThread { try right.ask("first") }
                try old.write("send own\n")
                try old.write("move new\n")
                try old.expect("moved")
                try new.expect("arrived")
                #expect(try requester.join() == "\(new.processID) first")
                let notes = try (0..<4).map { _ in try #require(try new.nextLine()) }
                #expect(notes.filter { $0 != "note own" } == ["note 0", "note 1", "note 2"])
                try old.write("send after\n")
                try new.expect("note after")
                old.closeInput()
                _ = try old.waitForExit()
                #expect(try right.ask("second") == "\(new.processID) second")
                // One that connects now sees the owner by the kernel's word, and finds it by the same address.
                let address = try right.destination.address()
                let late = SendRight(try #require(try RightsTable.connect(to: address)))
                #expect(try late.owner().processID == new.processID)
                #expect(try late.ask("third") == "\(new.processID) third")
                #expect(!right.isDead)
            }
        }
    }

    @Test("a client that is connected sees the new owner, by the kernel's word", arguments: ["never", "always"])
    func owner(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            try Self.withOwners(at: fixture, rings: rings, newEndsAs: .signalled(SIGKILL)) { old, new, right in
                let former = try right.owner()
                #expect(former.processID == old.processID)
                let requester = runOnThread { try right.ask("first") }
                try old.write("move new\n")
                try old.expect("moved")
                try new.expect("arrived")
                #expect(try requester.join() == "\(new.processID) first")
                let owner = try right.owner()
                #expect(owner.processID == new.processID)
                #expect(owner.userID == former.userID)
                let reply = try right.request(
                    MachMessage(id: 1, text: "second"), sendLimit: longTimeout, replyLimit: longTimeout)
                #expect(reply.sender.processID == new.processID)
                // The kernel leads to the process at the other end when the connection was made, and to no later one.
                #expect(failure { _ = try owner.openProcess() }?.code == .connectionEnded)
                let (reasons, worker) = (Recorder<PortEndReason>("notices"), try ResidentThread(name: "worker"))
                try right.notifyWhenDead(on: worker.loop) { reasons.append($0) }
                old.closeInput()
                _ = try old.waitForExit()
                #expect(!right.isDead)
                try new.killAndReap()
                #expect(reasons.waitUntilCount(1) == [.unknown])
                worker.end()
            }
        }
    }

    @Test("an old owner that is killed after the move is not missed, and no process takes the path for a dead one's")
    func oldIsKilled() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try Self.withOwners(at: fixture, oldEndsAs: .signalled(SIGKILL)) { old, new, right in
                try old.write("move new\n")
                try old.expect("moved")
                try new.expect("arrived")
                try old.killAndReap()
                // A new process sweeps the sockets of dead ones.
                try withPeer(["ask", fixture.directory, "new", "1", "x"], at: fixture) { _ in }
                #expect(try right.ask("second") == "\(new.processID) second")
                let address = try right.destination.address()
                let late = SendRight(try #require(try RightsTable.connect(to: address)))
                #expect(try late.ask("third") == "\(new.processID) third")
            }
        }
    }

    @Test("a new owner that is killed with the message unread leaves a dead port, with notices")
    func newIsKilled() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try Self.withOwners(at: fixture, newIsDeaf: true, newEndsAs: .signalled(SIGKILL)) { old, new, right in
                let requester = runOnThread { failure { _ = try right.ask("first") }?.code }
                try old.write("move new\n")
                try old.expect("moved")
                try new.killAndReap()
                #expect(try requester.join() == .peerDied)
                #expect(failure { _ = try right.ask("second") }?.code == .deadName)
                #expect(right.isDead)
            }
        }
    }

    @Test(
        "either owner killed at any moment of a move: the port is whole at one of them, or dead, and no reply is doubled",
        .seeded, arguments: [true, false], ["never", "always"])
    func killedAnywhere(old isOld: Bool, rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            var generator = Seed.generator()
            var movedCount = 0
            for round in 0..<Self.killCount {
                let iterations = Int.random(in: 0...(round % 2 == 0 ? 200_000 : 20_000), using: &generator)
                let killed = ProcessEnd.signalled(SIGKILL)
                let ends: (ProcessEnd, ProcessEnd) = isOld ? (killed, .exited(0)) : (.exited(0), killed)
                try Self.withOwners(at: fixture, rings: rings, oldEndsAs: ends.0, newEndsAs: ends.1) {
                    old, new, right in
                    try old.write("serve\n")
                    #expect(try right.ask("0") == "\(old.processID) 0")
                    let client = runOnThread { () -> ([Int32], PortError.Code?) in
                        var owners: [Int32] = []
                        for number in 1...200 {
                            do throws(PortError) {
                                let reply = try right.request(
                                    MachMessage(id: 1, text: "\(number)"), sendLimit: longTimeout,
                                    replyLimit: longTimeout)
                                let words = reply.text.split(separator: " ")
                                if words[1] != "\(number)" { Issue.record("\(number) was answered with \(words[1])") }
                                owners.append(Int32(words[0]) ?? 0)
                            } catch {
                                return (owners, error.code)
                            }
                        }
                        return (owners, nil)
                    }
                    try old.write("move new\n")
                    spin(iterations)
                    try (isOld ? old : new).killAndReap()
                    let (owners, failure) = try client.join()
                    if owners.contains(new.processID) { movedCount += 1 }
                    // First the old one, then the new one, and never the old one again.
                    #expect(owners.drop { $0 == old.processID }.allSatisfy { $0 == new.processID }, "round \(round)")
                    if failure == nil {
                        #expect(owners.count == 200, "round \(round)")
                    } else {
                        #expect(
                            [.peerDied, .deadName].contains(failure), "round \(round): \(String(describing: failure))")
                        #expect(right.isDead, "round \(round)")
                    }
                }
            }
            print("the new owner answered in \(movedCount) of \(Self.killCount) rounds")
        }
    }

    private static func withOwners(
        at fixture: NameFixture, newIsDeaf: Bool = false, rings: String = "never",
        oldEndsAs oldEnd: ProcessEnd = .exited(0),
        newEndsAs newEnd: ProcessEnd = .exited(0), _ body: (ChildProcess, ChildProcess, SendRight) throws -> Void
    ) throws {
        try withReadyPeer(["mover", fixture.directory, "old"], at: fixture, rings: rings, endsAs: oldEnd) { old in
            let successor = newIsDeaf ? "deaf-successor" : "successor"
            let words = [successor, fixture.directory, "new"]
            try withReadyPeer(words, at: fixture, rings: rings, endsAs: newEnd) { new in
                let front = try fixture.names.lookUp("old")
                let reply = try front.request(MachMessage(), sendLimit: longTimeout, replyLimit: longTimeout)
                let right = try #require(reply.rights.first)
                try #require(right.destination as? RemotePort).reached().useRings(
                    try #require(RingPolicy(rawValue: rings)))
                try body(old, new, right)
            }
        }
    }
}

extension SendRight {
    fileprivate func ask(_ text: String) throws -> String {
        try request(MachMessage(id: 1, text: text), sendLimit: longTimeout, replyLimit: longTimeout).text
    }
}
