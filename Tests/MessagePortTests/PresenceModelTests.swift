// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import Testing

/// Every state that three processes, which pass a right on, use it, let it go and die, can reach.
private struct PresenceExploration {
    private let fault: PresenceFault?
    private let isSymmetric: Bool
    private var numbers: [PresenceWorld: Int] = [:]
    private var worlds: [PresenceWorld] = []
    private var origins: [(state: Int, step: String)] = []
    private(set) var notifiedCount = 0
    private(set) var violation: String?

    var count: Int { worlds.count }

    init(from start: PresenceWorld, isSymmetric: Bool = false, with fault: PresenceFault? = nil) {
        (self.fault, self.isSymmetric) = (fault, isSymmetric)
        visit(start, from: 0, "")
        var next = 0
        while next < worlds.count, violation == nil {
            expand(next)
            next += 1
        }
    }

    private mutating func visit(_ world: PresenceWorld, from origin: Int, _ step: String) {
        let world = isSymmetric ? world.ordered : world
        if numbers[world] != nil { return }
        numbers[world] = worlds.count
        worlds.append(world)
        origins.append((origin, step))
        guard world.isNotified else { return }
        notifiedCount += 1
        if let holder = world.holder { report("notified early: \(holder)", worlds.count - 1) }
    }

    /// All steps to a state, one a line.
    private mutating func report(_ problem: String, _ last: Int) {
        var (steps, state) = ([problem], last)
        while state > 0 {
            steps.insert(origins[state].step, at: 0)
            state = origins[state].state
        }
        violation = violation ?? steps.joined(separator: "\n")
    }

    private mutating func expand(_ index: Int) {
        let world = worlds[index]
        if world.isNotified { return }
        let count = expandSystem(world, index)
        if count == 0, world.holder == nil { report("never notified", index) }
        expandOwner(world, index)
        for client in PresenceWorld.clients where world[client].isRunning {
            expandProgram(of: client, world, index)
        }
    }

    private mutating func step(
        _ name: @autoclosure () -> String, _ world: PresenceWorld, _ origin: Int,
        _ body: (inout PresenceWorld) -> Void
    ) {
        var world = world
        body(&world)
        visit(world, from: origin, name())
    }

    /// What happens by itself, sooner or later.
    ///
    /// - Returns: how many different things may happen now.
    private mutating func expandSystem(_ world: PresenceWorld, _ index: Int) -> Int {
        var count = 0
        func sees(_ condition: Bool) -> Bool {
            if condition { count += 1 }
            return condition
        }
        let fault = fault
        for pipe in world.hungUp {
            count += 1
            step("the port finds that pipe \(pipe) has hung up", world, index) { $0.seeHangUp(pipe, fault) }
        }
        let isWaited = PresenceWorld.clients.contains { world[$0].connection == .waiting }
        for thread in world.threads {
            switch world[thread: thread] {
            case .nothing where sees(world.mustAccept || isWaited):
                step("thread \(thread) begins to accept", world, index) { $0.beginAccept(thread, fault) }
            case .nothing: break
            case .began:
                count += 1
                step("thread \(thread) accepts", world, index) { $0.accept(thread) }
            default:
                count += 1
                step("thread \(thread) has accepted", world, index) { $0.endAccept(thread, fault) }
            }
        }
        if sees(world.hasFormerConnection && !world.hasFormerRight) {
            step("the port finds the former owner's connection closed", world, index) { $0.seeFormerEnd(fault) }
        }
        if sees(world.hasUncounted) {
            step("the port counts the right that came back", world, index) { $0.countReturned() }
        }
        for client in PresenceWorld.clients {
            let state = world[client]
            if state.connection == .accepted, sees(!state.announced.isEmpty) {
                step("the port reads client \(client)'s announcement", world, index) {
                    $0.readAnnouncement(of: client, fault)
                }
            } else if state.connection == .accepted, sees(state.isClosed) {
                step("the port finds client \(client)'s connection closed", world, index) {
                    $0.seeEnd(of: client, fault)
                }
            }
        }
        return count
    }

    /// What the program of the port's process may do.
    private mutating func expandOwner(_ world: PresenceWorld, _ index: Int) {
        let fault = fault
        if world.mayMove, world.isQuiet { step("the port moves", world, index) { $0.move(fault) } }
        if world.hasFormerRight {
            step("the former owner drops its right", world, index) { $0.dropFormerRight() }
        }
        if world.rightCount > 0 {
            step("the owner drops its right", world, index) { $0.dropRight(fault) }
            for client in PresenceWorld.clients where world.maySend(to: client) {
                step("the owner sends a right to client \(client)", world, index) { $0.export(to: client, fault) }
            }
        } else if !world.hasUncounted {
            step("the owner makes a right", world, index) { $0.makeRight() }
            if world[to: 0] > 0 {
                step("the owner receives the right", world, index) { $0.receiveBack(fault) }
            }
        }
        if world[to: 0] > 0 { step("the owner drops the message unread", world, index) { $0[to: 0] = 0 } }
    }

    /// What a client's program may do.
    private mutating func expandProgram(of client: Int, _ world: PresenceWorld, _ index: Int) {
        let (state, fault) = (world[client], fault)
        step("client \(client) dies", world, index) { $0.end(client) }
        if world[to: client] > 0 {
            step("client \(client) receives the right", world, index) { $0.receive(client, fault) }
            step("client \(client) drops the message unread", world, index) { $0[to: client] = 0 }
        }
        if state.mayLookUp, state.connection == .none {
            step("client \(client) finds the port by its name", world, index) { $0.connect(client, byName: true) }
        }
        if !state.unannounced.isEmpty, state.connection != .none {
            step("client \(client) announces its pipe", world, index) { $0.announce(client) }
        }
        guard state.hasRight, !state.isLate else { return }
        step("client \(client) releases its rights", world, index) { $0[client].release() }
        if state.connection == .none {
            step("client \(client) uses the right", world, index) { $0.connect(client, byName: false) }
        }
        let rights =
            state.received.pipes.map { Optional($0) } + (state.hasBareRight || state.hasNamedRight ? [nil] : [])
        for receiver in 0...2 where receiver != client && world.maySend(to: receiver) {
            for right in rights {
                let name = right.map { "the right of pipe \($0)" } ?? "its right"
                step("client \(client) passes \(name) to \(receiver)", world, index) {
                    $0.pass(right, from: client, to: receiver, fault)
                }
            }
        }
    }
}

@Suite("the presence of rights, in every order of what three processes do") struct PresenceModelTests {
    @Test("no notice comes while a right is left anywhere, and one comes when none is")
    func exact() {
        let exploration = PresenceExploration(from: PresenceWorld(), isSymmetric: true)
        #expect(exploration.violation == nil, "\(exploration.violation ?? "")")
        #expect(exploration.count > 200_000 && exploration.notifiedCount > 0)
    }

    @Test("the same where a process finds the port by its name, and passes the right on")
    func named() {
        let exploration = PresenceExploration(from: PresenceWorld(sendCount: 1, named: 1))
        #expect(exploration.violation == nil, "\(exploration.violation ?? "")")
        #expect(exploration.count > 25_000 && exploration.notifiedCount > 0)
    }

    @Test("the same where two processes find the port by its name, and two threads accept them")
    func threads() {
        let exploration = PresenceExploration(from: PresenceWorld(sendCount: 0, named: 2, threads: 2))
        #expect(exploration.violation == nil, "\(exploration.violation ?? "")")
        #expect(exploration.count > 25_000 && exploration.notifiedCount > 0)
    }

    @Test("the same where the port moves to another process at any moment", arguments: [0, 1])
    func moves(named: Int) {
        let world = PresenceWorld(sendCount: 1, named: named, moves: true)
        let exploration = PresenceExploration(from: world, isSymmetric: named == 0)
        #expect(exploration.violation == nil, "\(exploration.violation ?? "")")
        #expect(exploration.count > 1000 && exploration.notifiedCount > 0)
    }

    @Test("each mistake of a process is found", arguments: PresenceFault.allCases)
    func faults(fault: PresenceFault) throws {
        let world = PresenceWorld(sendCount: 1, named: fault.isOfMove ? 0 : 1, moves: fault.isOfMove)
        let exploration = PresenceExploration(from: world, with: fault)
        let violation = try #require(exploration.violation)
        #expect(violation.hasSuffix("never notified") == (fault == .retainsEnd))
    }
}
