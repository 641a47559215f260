// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Foundation
import Glibc
import NamedPortServer
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("Names between processes", .leakCheck(warmingUp: makeSpareDescriptor))
struct NamesAcrossProcessesTests {
    @Test("a name that another process holds is taken, and the error names its owner")
    func taken() async throws {
        try await withFixture { fixture in
            try withServer("name", at: fixture) { server in
                let error = failure { try fixture.names.register(MachPort(), name: "name") }
                #expect(error?.code == .nameTaken)
                #expect(error?.owner == server.processID)
                let owners = try fixture.names.list().map { "\($0.name) \($0.owner)" }
                #expect(owners == ["name \(server.processID)"])
            }
            let list = try fixture.names.list()
            #expect(list == [])
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
        }
    }

    @Test("the list has the names of all live processes, and none of a killed one")
    func list() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let own = MachPort()
            try fixture.names.register(own, name: "own")
            try withServer("killed", at: fixture, endsAs: .signalled(SIGKILL)) { killed in
                try withServer("living", at: fixture) { living in
                    let all = try fixture.names.list().map { "\($0.name) \($0.owner)" }
                    #expect(
                        all == ["killed \(killed.processID)", "living \(living.processID)", "own \(sysProcessID())"])
                    try killed.killAndReap()
                    let rest = try fixture.names.list().map(\.name)
                    #expect(rest == ["living", "own"])
                }
            }
            own.invalidate()
        }
    }

    @Test("a killed owner's name is unknown and free at once, 100 times in a row")
    func killedOwner() async throws {
        try await withFixture(leaving: .anything) { fixture in
            for round in 0..<100 {
                try withPeer(["hold", fixture.directory], at: fixture, endsAs: .signalled(SIGKILL)) { holder in
                    try holder.take("name")
                    let right = try fixture.names.lookUp("name")
                    try holder.killAndReap()
                    #expect(right.isDead, "round \(round)")
                    #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown, "round \(round)")
                    let port = MachPort()
                    try fixture.names.register(port, name: "name")
                    #expect(try fixture.names.lookUp("name") == port.makeSendRight())
                    port.invalidate()
                }
            }
        }
    }

    @Test("the next process that registers a name sweeps a killed one's sockets and names away")
    func sweep() async throws {
        try await withFixture { fixture in
            try withServer("other", at: fixture, endsAs: .signalled(SIGKILL)) { try $0.killAndReap() }
            try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { try $0.killAndReap() }
            #expect(try sysList(fixture.directory + "/names") == ["name"])  // the second has swept the first away
            let left = try sysList(fixture.directory + "/sockets")
            #expect(left.count == 2)  // the socket and its owner's lock file
            try withServer("third", at: fixture) { _ in
                #expect(try sysList(fixture.directory + "/names") == ["third"])
                let now = try sysList(fixture.directory + "/sockets")
                #expect(now.count == 2)
                #expect(Set(now).isDisjoint(with: left))
            }
        }
    }

    @Test("of eight processes that want a dead one's name at once, one gets it and the others learn which, 100 times")
    func race() async throws {
        try await withFixture { fixture in
            let dead = try Self.recordOfDead(at: fixture)
            try withHolders(8, at: fixture) { holders in
                // The first name of each, so that no process sweeps from now on.
                for (index, holder) in holders.enumerated() {
                    try holder.write("take warm\(index)\n")
                    try holder.expect("taken")
                }
                var judged = 0
                for round in 0..<100 {
                    try Self.leave(dead, at: fixture)
                    let start = MonotonicInstant.now
                    for holder in holders { try holder.write("take name\n") }
                    let answers = try holders.map { try $0.nextLine() ?? "nothing" }
                    let winner = try #require(answers.firstIndex(of: "taken"))
                    #expect(answers.filter { $0.hasPrefix("error nameTaken") }.count == 7, "round \(round)")
                    // On a busy machine the winner may take longer to write its record than the others try.
                    let refusal = "error nameTaken, owner \(holders[winner].processID)"
                    if start.duration(to: .now) < Self.askedFor {
                        #expect(answers.filter { $0 == refusal }.count == 7, "round \(round): \(answers)")
                        judged += 1
                    }
                    for holder in holders { try holder.write("find name\n") }
                    for holder in holders { try holder.expect("found") }
                    try holders[winner].write("free name\n")
                    try holders[winner].expect("freed")
                    #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
                }
                #expect(judged > 0)
            }
        }
    }

    /// How long a process that finds a name taken by a dead owner tries to find the new owner.
    private static let askedFor = Duration.milliseconds(200)

    /// Leaves a record, like a killed process.
    private static func leave(_ record: Data, at fixture: NameFixture) throws {
        let file = try fixture.file("name")
        try record.write(to: URL(fileURLWithPath: file))
        chmod(file, 0o600)
    }

    /// The record in the file of a killed process's name.
    private static func recordOfDead(at fixture: NameFixture) throws -> Data {
        try withServer("name", at: fixture, endsAs: .signalled(SIGKILL)) { server in
            let record = try Data(contentsOf: URL(fileURLWithPath: fixture.file("name")))
            try server.killAndReap()
            return record
        }
    }

    @Test("a process that finds a name taken while it passes from a dead owner learns the new one, 20 times")
    func takenOverFromDead() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let warm = MachPort()
            try fixture.names.register(warm, name: "warm")
            let dead = try Self.recordOfDead(at: fixture)
            var judged = 0
            for round in 0..<20 {
                let losing = Mutex<TestThread<PortError?>?>(nil)
                let start = MonotonicInstant.now
                try Self.leave(dead, at: fixture)
                // The winner has the lock, and has written nothing yet.
                let rule = SystemCallFaults.Rule(
                    .write,
                    .precede {
                        let hasRead = Gate("the loser's read")
                        let loser = runOnThread {
                            let rule = SystemCallFaults.Rule(.read, .precede { hasRead.open() }, skipping: 1)
                            return SystemCallFaults.with([rule]) {
                                failure { try fixture.names.register(MachPort(), name: "name") }
                            }.result
                        }
                        losing.withLock { $0 = loser }
                        hasRead.wait()
                    })
                _ = try SystemCallFaults.with([rule]) { try fixture.names.register(warm, name: "name") }
                let error = try #require(losing.withLock { $0 }).join()
                #expect(error?.code == .nameTaken)
                if start.duration(to: .now) < Self.askedFor {
                    #expect(error?.owner == sysProcessID(), "round \(round)")
                    judged += 1
                }
                #expect(fixture.names.unregister("name"))
            }
            #expect(judged > 0)
            warm.invalidate()
        }
    }

    @Test("a name passes from process to process, and each holder's right is another")
    func handover() async throws {
        try await withFixture { fixture in
            try withHolders(2, at: fixture) { holders in
                var rights: [SendRight] = []
                for round in 0..<6 {
                    let holder = holders[round % 2]
                    try holder.write("take name\n")
                    try holder.expect("taken")
                    rights.append(try fixture.names.lookUp("name"))
                    try holder.write("free name\n")
                    try holder.expect("freed")
                }
                #expect(Set(rights).count == 6)
                #expect(rights.map(\.isDead) == Array(repeating: true, count: 6))
            }
        }
    }

    @Test("two directories may each have the name, in one process and between processes")
    func separate() async throws {
        try await withFixture { fixture in
            let others = try PortNameServer(directory: fixture.scratch.path("others"))
            let own = MachPort()
            try others.register(own, name: "name")
            try withServer("name", at: fixture) { server in
                let right = try fixture.names.lookUp("name")
                #expect(try right.request(MachMessage(id: Act.process)).text == "\(server.processID)")
                #expect(try others.lookUp("name") == own.makeSendRight())
            }
            own.invalidate()
        }
    }

    /// Runs `body` beside `count` processes that register and free names.
    private func withHolders(_ count: Int, at fixture: NameFixture, _ body: ([ChildProcess]) throws -> Void) throws {
        func start(_ holders: [ChildProcess]) throws {
            if holders.count == count {
                for holder in holders { try holder.expect("ready") }
                return try body(holders)
            }
            try withPeer(["hold", fixture.directory], at: fixture) { holder in
                try start(holders + [holder])
            }
        }
        try start([])
    }
}
