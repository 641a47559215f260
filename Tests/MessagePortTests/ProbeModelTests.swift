// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

// A few threads, each in a process of its own or several in one, that wait for each other's ports; orders in which
// their waits can begin and end, their probes can start, and packets can arrive, with the table that the library uses.
// What the model adds is what `WaitProbes` and `WaitGraph` do: which waits are reached, and whether they still stand.
@Suite("orders of probes and waits of a few threads") struct ProbeModelTests {
    /// For each thread the threads of which any one may answer its request. They serve one port.
    private struct Network {
        let servers: [[Int]]
        /// Threads that do not wait at the end: those that answer all requests sooner or later.
        var running: Set<Int> = []
    }

    private struct Packet: Hashable {
        /// The thread whose request it is about.
        let thread: Int
        let probe: WaitProbe
        /// Nil for a question.
        let hasReturned: Bool?
    }

    private struct World {
        /// When each thread's wait was noticed: nil before it waits, zero before it has a number.
        var waits: [UInt64?]
        var hasStarted: [Bool]
        /// Requests whose replies are on their way.
        var replies: Set<Int> = []
        /// The threads that have waited and were answered.
        var over: Set<Int> = []
        var refused: [Int] = []
        var packets: Set<Packet> = []
        var tables: [ProbeTable<Int?>]
        var clock: UInt64 = 0

        init(_ count: Int) {
            waits = Array(repeating: nil, count: count)
            hasStarted = Array(repeating: false, count: count)
            tables = Array(repeating: ProbeTable(), count: count)
        }
    }

    private struct Model {
        let network: Network
        var worldCount = 0
        var refusalCounts: Set<Int> = []

        init(_ network: Network) { self.network = network }

        private var count: Int { network.servers.count }

        /// Whether the thread waits, and its reply is owed.
        private func isBlocked(_ thread: Int, _ world: World) -> Bool {
            world.waits[thread] != nil && !world.replies.contains(thread)
        }

        /// The waits that serve a thread's request, or nil; each in the process of its thread.
        private func reached(by probe: WaitProbe, from thread: Int, _ world: inout World) -> Set<WaitKey>? {
            var waits: Set<WaitKey> = []
            for server in network.servers[thread] {
                guard world.waits[server] != nil else { return nil }
                let wait = number(of: server, &world)
                // A reply on its way is known where it was sent, not where it is awaited.
                if wait > probe.start { return nil }
                waits.insert(WaitKey(number: wait, token: token(server)))
            }
            return waits
        }

        private func token(_ thread: Int) -> RequestToken { RequestToken(connection: 1, token: UInt64(thread)) }

        private func number(of thread: Int, _ world: inout World) -> WaitNumber {
            if world.waits[thread] == 0 {
                world.clock += 1
                world.waits[thread] = world.clock
            }
            return WaitNumber(time: world.waits[thread] ?? 0, secret: UInt64(thread))
        }

        /// The process of the servers of a thread's port: that of the first.
        private func process(servingFor thread: Int) -> Int { network.servers[thread].min() ?? 0 }

        private func process(of thread: Int) -> Int {
            // Servers of one port share a process.
            network.servers.first { $0.contains(thread) }?.min() ?? thread
        }

        /// A thread waits in truth if no running one can be reached, and no reply is on its way to those that can.
        private func isDeadlocked(_ thread: Int, _ world: World) -> Bool {
            var (seen, rest) = (Set<Int>(), [thread])
            while let next = rest.popLast() {
                if !seen.insert(next).inserted { continue }
                if !isBlocked(next, world) { return false }
                rest += network.servers[next]
            }
            return true
        }

        // MARK: Steps

        private func enter(_ probe: WaitProbe, _ source: Int?, _ thread: Int, _ world: inout World) {
            let here = source == nil ? process(of: thread) : process(servingFor: thread)
            let own = WaitKey(number: probe.start, token: token(thread))
            guard let reached = source == nil ? [own] : reached(by: probe, from: thread, &world) else { return }
            let step = world.tables[here].enter(
                probe, from: source, along: source == nil ? nil : RequestToken(connection: 2, token: UInt64(thread)),
                reaching: reached,
                at: MonotonicInstant(nanoseconds: 1))
            switch step {
            case .passOn(let tokens):
                for token in tokens {
                    world.packets.insert(Packet(thread: Int(token.token), probe: probe, hasReturned: nil))
                }
            case .done(let entry): finish(entry, thread, &world)
            }
        }

        private func finish(_ entry: ProbeTable<Int?>.Entry, _ thread: Int, _ world: inout World) {
            if let source = entry.source {
                guard isBlocked(source, world),
                    reached(by: entry.probe, from: source, &world) == entry.reached
                else { return }
                world.packets.insert(
                    Packet(thread: source, probe: entry.probe, hasReturned: entry.hasReturned))
            } else if entry.hasReturned, let refused = world.waits.firstIndex(of: entry.probe.start.time) {
                #expect(isDeadlocked(refused, world), "a wait is refused that would end")
                world.refused.append(refused)
                end(refused, &world)
            }
        }

        /// A wait ends: its thread goes on, and answers nobody any more in this model but those that wait for it.
        private func end(_ thread: Int, _ world: inout World) {
            world.waits[thread] = nil
            world.replies.remove(thread)
            world.over.insert(thread)
        }

        private func receive(_ packet: Packet, _ world: inout World) {
            world.packets.remove(packet)
            guard let hasReturned = packet.hasReturned else {
                if isBlocked(packet.thread, world) { enter(packet.probe, packet.thread, packet.thread, &world) }
                return
            }
            guard world.waits[packet.thread] != nil else { return }
            let done = world.tables[process(of: packet.thread)].answer(
                packet.probe, about: token(packet.thread), hasReturned: hasReturned)
            if let done { finish(done, packet.thread, &world) }
        }

        /// What may happen next.
        private func steps(_ world: World) -> [(inout World) -> Void] {
            var steps: [(inout World) -> Void] = []
            for thread in 0..<count {
                let mayWait = !network.running.contains(thread) && !world.over.contains(thread)
                if world.waits[thread] == nil {
                    if mayWait { steps.append { $0.waits[thread] = 0 } }
                    for client in 0..<count where network.servers[client].contains(thread) {
                        if !mayWait, isBlocked(client, world) { steps.append { $0.replies.insert(client) } }
                    }
                } else if world.replies.contains(thread) {
                    steps.append { end(thread, &$0) }
                } else if !world.hasStarted[thread] {
                    steps.append { world in
                        world.hasStarted[thread] = true
                        let start = number(of: thread, &world)
                        enter(WaitProbe(start: start, round: 0), nil, thread, &world)
                    }
                }
            }
            for packet in world.packets { steps.append { receive(packet, &$0) } }
            return steps
        }

        /// All worlds that can follow.
        mutating func explore(_ world: World) {
            let steps = steps(world)
            if steps.isEmpty { return finish(world) }
            for step in steps {
                var next = world
                step(&next)
                explore(next)
            }
        }

        /// One world that can follow.
        mutating func walk(_ world: World, using generator: inout SplitMix64) {
            var world = world
            while let step = steps(world).randomElement(using: &generator) { step(&world) }
            finish(world)
        }

        private mutating func finish(_ world: World) {
            worldCount += 1
            refusalCounts.insert(world.refused.count)
            #expect(world.over.union(network.running).count == count, "a thread waits without an end")
        }
    }

    private func walks(_ network: Network) -> Set<Int> {
        var (model, generator) = (Model(network), Seed.generator())
        for _ in 0..<3_000 { model.walk(World(network.servers.count), using: &generator) }
        return model.refusalCounts
    }

    @Test("of two threads that wait for each other one is refused, in every order")
    func two() {
        var model = Model(Network(servers: [[1], [0]]))
        model.explore(World(2))
        #expect(model.refusalCounts == [1] && model.worldCount > 20)
    }

    @Test(
        "of a circle exactly one is refused, and all others go on, also those that only wait for the circle", .seeded,
        arguments: [
            [[1], [2], [0]], [[1], [0], [0]], [[1], [2], [1]], [[1], [2], [3], [0], [3]], [[1], [2], [0], [2]],
        ])
    func circles(servers: [[Int]]) {
        #expect(walks(Network(servers: servers)) == [1])
    }

    @Test("of two circles one each is refused", .seeded)
    func separate() {
        #expect(walks(Network(servers: [[1], [0], [3], [2]])) == [2])
    }

    @Test(
        "where a thread runs that can be reached, none is refused", .seeded,
        arguments: [[[1], [2], []], [[1, 2], [0], []], [[1], [0, 2], []]])
    func open(servers: [[Int]]) {
        #expect(walks(Network(servers: servers, running: [2])) == [0])
    }

    @Test("a port that two threads serve is in a circle when both wait", .seeded)
    func alternatives() {
        #expect(walks(Network(servers: [[1, 2], [0], [0]])) == [1])
    }
}
