// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("PeerUsage") struct PeerUsageTests {
    private func accounts(connections: Int = 10) -> Accounts {
        let usage = Accounts()
        usage.accounts.limits.connections = connections
        usage.accounts.limits.queuedBytes = 100
        usage.accounts.limits.queuedDescriptors = 10
        return usage
    }

    @Test("a process has as many connections as it may, others have their own")
    func connections() {
        let accounts = accounts(connections: 2)
        let made = [accounts.connect(1, of: 7), accounts.connect(2, of: 7), accounts.connect(3, of: 7)]
        #expect(made == [true, true, false])
        let other = accounts.connect(4, of: 8)
        #expect(other)
        let unlimited = accounts.connect(5, of: 7, isLimited: false)
        #expect(unlimited)
        accounts.disconnect(3)  // was never counted
        let fourth = accounts.connect(6, of: 7)
        #expect(!fourth)
        for key in UInt64(1)...6 { accounts.disconnect(key) }
        #expect(accounts.isEmpty)
    }

    @Test(
        "a process that has reached a limit is paused until it is under it again; a message may exceed it",
        arguments: [false, true])
    func pausing(byDescriptors: Bool) {
        let accounts = accounts()
        let (bytes, descriptors) = byDescriptors ? (0, 6) : (60, 0)
        for (key, process) in [(UInt64(1), Int32(7)), (2, 7), (3, 8)] {
            #expect(accounts.connect(key, of: process) == true)
        }
        accounts.charge(bytes: bytes, descriptors: descriptors, by: 7)
        #expect(accounts.pause(1) == false)
        accounts.charge(bytes: bytes, descriptors: descriptors, by: 7)
        #expect(accounts.isOver(7) && !accounts.isOver(8))
        #expect(accounts.pause(1) == true)
        #expect(accounts.pause(2) == true)
        #expect(accounts.pause(3) == false)
        #expect(accounts.removeResumable() == [])
        #expect(accounts.refund(bytes: bytes, descriptors: descriptors, by: 7) == true)
        #expect(accounts.removeResumable() == [1, 2])
        #expect(accounts.removeResumable() == [])
        #expect(accounts.refund(bytes: bytes, descriptors: descriptors, by: 7) == false)
        for key in UInt64(1)...3 { accounts.disconnect(key) }
        #expect(accounts.isEmpty)
    }

    @Test("all processes of another user together have a limit of rings; those of the port's own user have no limit")
    func rings() {
        for (user, isOwn) in [(sysUserID(), true), (sysUserID() + 1, false)] {
            let accounts = accounts(connections: 100)
            accounts.accounts.limits.processesOfUser = 2
            func charge(_ key: UInt64) -> Bool {
                let owner = PeerID.process(Int32(key / 8), of: user)
                #expect(accounts.connect(key, of: owner) == true)
                return accounts.accounts.reserveRings(key)
            }
            for key in UInt64(8)..<24 { #expect(charge(key)) }
            #expect(charge(24) == isOwn)
            accounts.disconnect(8)
            accounts.accounts.releaseRings(9)
            #expect(charge(25) && charge(26))
            #expect(charge(27) == isOwn)
            for key in UInt64(8)..<28 { accounts.disconnect(key) }
            #expect(accounts.isEmpty)
        }
    }

    @Test("what is in the queue counts after the connection has gone, and against the next one")
    func reconnecting() {
        let accounts = accounts()
        _ = accounts.connect(1, of: 7)
        accounts.charge(bytes: 100, descriptors: 0, by: 7)
        #expect(accounts.pause(1) == true)
        accounts.disconnect(1)
        #expect(accounts.removeResumable() == [])
        _ = accounts.connect(2, of: 7)
        #expect(accounts.pause(2) == true)
        accounts.disconnect(2)
        #expect(accounts.refund(bytes: 100, descriptors: 0, by: 7) == false)
        #expect(accounts.isEmpty)
    }

    @Test(
        "a process alone may fill the queue; several have a share each, and one is reserved for a newcomer")
    func shares() {
        let accounts = accounts()
        accounts.accounts.queueLimit = 8
        _ = accounts.connect(1, of: 7)
        accounts.charge(messages: 8, by: 7)
        #expect(!accounts.isOver(7) && accounts.pause(1) == false)
        // Another is connected and has nothing there: half is for it.
        _ = accounts.connect(2, of: 8)
        #expect(accounts.isOver(7) && !accounts.isOver(8))
        #expect(accounts.pause(1) == true)
        for _ in 0..<5 { #expect(accounts.refund(messages: 1, by: 7) == false) }
        #expect(accounts.refund(messages: 1, by: 7) == true)
        #expect(accounts.removeResumable() == [1])
        // Two have messages, a third is connected: each of the two has a third.
        accounts.charge(messages: 1, by: 8)
        _ = accounts.connect(3, of: 9)
        #expect(accounts.isOver(7) && !accounts.isOver(8))
        accounts.disconnect(3)
        #expect(!accounts.isOver(7))
        // However many there are, each gets one in.
        for key in UInt64(10)..<30 {
            _ = accounts.connect(key, of: Int32(key))
            #expect(!accounts.isOver(Int32(key)))
            accounts.charge(messages: 1, by: Int32(key))
        }
        #expect(accounts.isOver(15))
        #expect(accounts.pause(15) == true)
        #expect(accounts.refund(messages: 1, by: 15) == true)
    }

    @Test("a limit in messages that was set holds for each process, also for one that is alone")
    func messageLimit() {
        let accounts = accounts()
        accounts.accounts.limits.queuedMessages = 3
        _ = accounts.connect(1, of: 7)
        accounts.charge(messages: 2, by: 7)
        #expect(!accounts.isOver(7))
        accounts.charge(messages: 1, by: 7)
        #expect(accounts.isOver(7) && accounts.pause(1) == true)
        #expect(accounts.refund(messages: 1, by: 7) == false)
        #expect(accounts.refund(messages: 1, by: 7) == true)
        #expect(accounts.removeResumable() == [1])
    }

    @Test(
        "what a process may still take up is what is left of its share, that of one more sharer before its first message"
    )
    func allowance() {
        let accounts = accounts()
        accounts.accounts.queueLimit = 12
        func messages(_ process: Int32) -> Int { accounts.accounts.allowance(of: .process(process)).messages }
        _ = accounts.connect(1, of: 7)
        #expect(messages(7) == .max)
        _ = accounts.connect(2, of: 8)
        #expect(messages(7) == 6)
        accounts.charge(messages: 4, by: 7)
        #expect(messages(7) == 2 && messages(8) == 6)
        accounts.charge(messages: 6, bytes: 99, by: 8)
        #expect(messages(7) == 2 && messages(8) == 0)
        #expect(accounts.accounts.allowance(of: .process(8)).bytes == 1)
        accounts.charge(bytes: 100, by: 7)
        #expect(accounts.accounts.allowance(of: .process(7)) == ResourceUsage())
        accounts.accounts.limits.queuedMessages = 9
        #expect(messages(8) == 3)
    }

    /// Plain packets of these sizes.
    private func packets(_ sizes: [Int]) -> [PacketPrefix] {
        sizes.map { size in
            let header = PacketHeader(kind: .message, componentCount: 1, totalLength: UInt64(size))
            let firstWord = ComponentKind.bytes.head(size - ComponentKind.headSize).littleEndian
            return PacketPrefix(head: header.words, firstWord: firstWord, payloadSize: size)
        }
    }

    @Test("a batch has at most half of what is left, at least one message, and none that is too large")
    func batches() {
        let accounts = accounts()
        func charge(_ sizes: [Int]) -> Int {
            accounts.accounts.charge(firstOf: packets(sizes), by: .process(7)).messages
        }
        accounts.accounts.limits.queuedMessages = 5
        accounts.accounts.limits.messageBytes = 40
        // What each message costs besides its payload; four of 16 bytes and that are too many.
        let more = ResourceUsage.message + ResourceUsage.component
        accounts.accounts.limits.queuedBytes = 4 * (more + 16) + 24
        _ = accounts.connect(1, of: 7)
        let sizes = [Int](repeating: 8, count: 9)
        #expect([charge(sizes), charge(sizes), charge(sizes), charge(sizes)] == [3, 1, 1, 0])
        #expect(accounts.isOver(7))
        #expect(accounts.refund(messages: 5, bytes: 5 * (8 + more), by: 7) == false)
        #expect(charge([41, 8]) == 0)
        // Half of what is left is reached with the second.
        #expect(charge([40, 40, 8]) == 2)
        #expect(accounts.refund(messages: 2, bytes: 2 * (40 + more), by: 7) == false)
        #expect(charge([8, 41]) == 1)
    }

    // MARK: Users

    /// Accounts, with a connection 10 * user + n for each of `counts` processes of users by their distance from this
    /// one.
    private func accounts(_ counts: [UInt32: Int], queueLimit: Int? = nil) -> Accounts {
        let accounts = accounts()
        accounts.accounts.queueLimit = queueLimit
        for (user, count) in counts {
            for number in 0..<count {
                #expect(accounts.connect(UInt64(user * 10) + UInt64(number), of: process(number, of: user)))
            }
        }
        return accounts
    }

    private func process(_ number: Int, of user: UInt32) -> PeerID {
        .process(Int32(100 * user) + Int32(number), of: sysUserID() &+ user)
    }

    @Test("the processes of another user have four times the connections of one, those of the own user more")
    func userConnections() {
        let accounts = accounts(connections: 2)
        for user in [UInt32(0), 1] {
            let made = (0..<10).map { accounts.connect(UInt64(user * 10) + UInt64($0), of: process($0, of: user)) }
            #expect(made.filter { $0 }.count == (user == 0 ? 10 : 8), "user \(user)")
        }
        accounts.disconnect(10)
        #expect(accounts.connect(30, of: process(9, of: 1)))
        for key in UInt64(0)...30 { accounts.disconnect(key) }
        #expect(accounts.isEmpty)
    }

    @Test("the processes of another user have four times the bytes and descriptors of one, and then all are paused")
    func userCosts() {
        for cost in [ResourceUsage(bytes: 90), ResourceUsage(descriptors: 9)] {
            let accounts = accounts([0: 6, 1: 6])
            for user in [UInt32(0), 1] {
                for number in 0..<5 { accounts.charge(cost, by: process(number, of: user)) }
            }
            #expect(!accounts.isOver(process(0, of: 0)))
            #expect(accounts.pause(0) == false)
            // The last has nothing there itself.
            #expect(accounts.isOver(process(5, of: 1)))
            #expect(accounts.allowance(of: process(5, of: 1)) == ResourceUsage())
            #expect(accounts.pause(15) && accounts.pause(10))
            // What another process of the user returns lets all go on.
            #expect(accounts.refund(cost, by: process(3, of: 1)))
            #expect(accounts.removeResumable(of: process(3, of: 1)) == [10, 15])
            #expect(accounts.allowance(of: process(5, of: 1)).bytes == (cost.bytes > 0 ? 40 : 100))
        }
    }

    @Test("a process paused by its own limit goes on when its user's processes are under their limit again")
    func pausedTwice() {
        let accounts = accounts([1: 6])
        accounts.charge(ResourceUsage(bytes: 100), by: process(0, of: 1))
        #expect(accounts.pause(10))
        for number in 1..<5 { accounts.charge(ResourceUsage(bytes: 80), by: process(number, of: 1)) }
        #expect(!accounts.refund(ResourceUsage(bytes: 10), by: process(0, of: 1)))
        #expect(accounts.refund(ResourceUsage(bytes: 80), by: process(4, of: 1)))
        #expect(accounts.removeResumable(of: process(4, of: 1)) == [10])
    }

    @Test("the slots of the queue are shared between users first, then between the processes of each")
    func userShares() {
        let accounts = accounts([0: 1, 1: 4], queueLimit: 24)
        func left(_ number: Int, of user: UInt32) -> Int {
            accounts.allowance(of: process(number, of: user)).messages
        }
        // One share of two is reserved for the user who has nothing there, in it one of two for the processes that have
        // none.
        #expect(left(0, of: 1) == 6 && left(0, of: 0) == 12)
        for number in 0..<3 { accounts.charge(ResourceUsage(messages: 4), by: process(number, of: 1)) }
        #expect(left(3, of: 1) == 0)
        #expect(accounts.pause(13))
        // However many processes the other user has, this one has its half.
        #expect(left(0, of: 0) == 12)
        #expect(!accounts.refund(ResourceUsage(messages: 3), by: process(0, of: 1)))
        #expect(accounts.refund(ResourceUsage(messages: 3), by: process(2, of: 1)))
        #expect(accounts.removeResumable(of: process(2, of: 1)) == [13])
    }

    @Test("the sums of users are those of their processes, whatever comes and goes", .seeded)
    func userSums() {
        var generator = Seed.generator()
        let accounts = accounts([:], queueLimit: 16)
        accounts.accounts.limits.queuedMessages = nil
        var taken: [(PeerID, ResourceUsage)] = []
        var connected: [UInt64] = []
        for key in UInt64(1)...2000 {
            let owner = process(Int.random(in: 0..<4, using: &generator), of: .random(in: 0..<3, using: &generator))
            switch Int.random(in: 0..<4, using: &generator) {
            case 0: if accounts.connect(key, of: owner) { connected.append(key) }
            case 1: if let last = connected.popLast() { accounts.disconnect(last) }
            case 2:
                let cost = ResourceUsage(messages: 1, bytes: .random(in: 0..<50, using: &generator))
                accounts.charge(cost, by: owner)
                taken.append((owner, cost))
            default:
                guard let index = taken.indices.randomElement(using: &generator) else { break }
                let (owner, cost) = taken.remove(at: index)
                if let key = connected.randomElement(using: &generator) { _ = accounts.pause(key) }
                if accounts.refund(cost, by: owner) { _ = accounts.removeResumable(of: owner) }
            }
        }
        for (owner, cost) in taken { _ = accounts.refund(cost, by: owner) }
        // Nothing is there any more, so no process is over a limit, and each paused one goes on.
        _ = accounts.removeResumable()
        for key in connected {
            #expect(!accounts.pause(key))
            accounts.disconnect(key)
        }
        #expect(accounts.isEmpty)
    }

    @Test("a process that has gone has no share of the queue, though ends of pipes are left", arguments: [nil, 12_345])
    func goneWithEnds(otherUser: UInt32?) {
        let accounts = accounts()
        accounts.accounts.queueLimit = 10
        let (here, gone) = (PeerID.process(7), PeerID.process(8, of: otherUser ?? sysUserID()))
        let connected = [accounts.connect(1, of: here), accounts.connect(2, of: gone)]
        #expect(connected == [true, true])
        accounts.accounts.addPipeEnd(of: gone)
        #expect(accounts.allowance(of: here).messages == 5)
        accounts.disconnect(2)
        #expect(accounts.allowance(of: here).messages == .max)
        _ = accounts.accounts.refund(ResourceUsage(), pipeEnds: 1, by: gone)
        accounts.disconnect(1)
        #expect(accounts.isEmpty)
    }

    @Test("a higher limit lets paused processes go on")
    func raising() {
        let accounts = accounts()
        _ = accounts.connect(1, of: 7)
        accounts.charge(bytes: 100, descriptors: 0, by: 7)
        _ = accounts.pause(1)
        accounts.accounts.limits.queuedBytes = 101
        #expect(accounts.removeResumable() == [1])
    }
}

/// Accounts in a box, so that expectations can change them.
private final class Accounts {
    var accounts = PeerUsage(limits: .standard, ownUser: sysIsOwnUser(sysUserID()) ? sysUserID() : nil)

    var isEmpty: Bool { accounts.isEmpty }

    func connect(_ key: UInt64, of process: Int32, isLimited: Bool = true) -> Bool {
        accounts.connect(key, of: .process(process), isLimited: isLimited)
    }

    func disconnect(_ key: UInt64) { accounts.disconnect(key) }
    func isOver(_ process: Int32) -> Bool { accounts.isOver(.process(process)) }
    func pause(_ key: UInt64) -> Bool { accounts.pause(key) }

    func charge(messages: Int = 0, bytes: Int = 0, descriptors: Int = 0, by process: Int32) {
        let cost = ResourceUsage(messages: messages, bytes: bytes, descriptors: descriptors)
        accounts.charge(cost, by: .process(process))
    }

    func refund(messages: Int = 0, bytes: Int = 0, descriptors: Int = 0, by process: Int32) -> Bool {
        let cost = ResourceUsage(messages: messages, bytes: bytes, descriptors: descriptors)
        return accounts.refund(cost, by: .process(process))
    }

    func removeResumable() -> Set<UInt64> { accounts.removeResumable() }

    func connect(_ key: UInt64, of owner: PeerID) -> Bool { accounts.connect(key, of: owner) }
    func charge(_ cost: ResourceUsage, by owner: PeerID) { accounts.charge(cost, by: owner) }
    func refund(_ cost: ResourceUsage, by owner: PeerID) -> Bool { accounts.refund(cost, by: owner) }
    func removeResumable(of owner: PeerID) -> Set<UInt64> { accounts.removeResumable(of: owner) }
    func isOver(_ owner: PeerID) -> Bool { accounts.isOver(owner) }
    func allowance(of owner: PeerID) -> ResourceUsage { accounts.allowance(of: owner) }
}

@Suite("PeerTable") struct PeerTableTests {
    @Test("each process has its own value, however often one is removed between", .seeded)
    func matchesDictionary() {
        var generator = Seed.generator()
        var (table, model) = (PeerTable<PeerID, Int>(), [PeerID: Int]())
        for step in 0..<5000 {
            let owner = PeerID.process(Int32.random(in: 1...8, using: &generator))
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                if let index = table.index(of: owner) { table.remove(at: index) }
                model[owner] = nil
            case 1:
                table[table.index(of: owner, default: 0)] += step
                model[owner, default: 0] += step
            default: break
            }
            #expect(table.index(of: owner).map { table[$0] } == model[owner])
            #expect(table.count == model.count && table.isEmpty == model.isEmpty)
        }
        #expect(Set(table.allOwners) == Set(model.keys))
        for (owner, value) in model { #expect(table.index(of: owner).map { table[$0] } == value) }
    }
}
