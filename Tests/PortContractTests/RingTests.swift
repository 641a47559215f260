// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("rings", .rings, .contract) struct RingTests {
    private func connection(_ right: SendRight) throws -> SocketConnection {
        try #require(right.destination as? RemotePort).reached()
    }

    private func hasRings(_ right: SendRight) throws -> Bool {
        try connection(right).hasRings
    }

    @Test("messages with descriptors, without, small and large, come in the order in which they were sent")
    func order() async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            #expect(try hasRings(right))
            let file = SharedDescriptor(try sysOpen("/dev/null", .reading))
            let sender = runOnThread {
                for id in Int32(0)..<600 {
                    var message = MachMessage(id: id, bytes: pattern(id % 50 == 0 ? 300_000 : Int(id)))
                    if id % 23 == 7 { message.components.append(.descriptor(file)) }
                    try right.send(message)
                }
            }
            for id in Int32(0)..<600 {
                let message = try port.next()
                #expect(message.id == id)
                #expect(message.bytes.count == (id % 50 == 0 ? 300_000 : Int(id)))
                #expect(message.descriptors.count == (id % 23 == 7 ? 1 : 0))
            }
            try sender.join()
            #expect(try port.tryReceive() == nil)
        }
    }

    /// At least one tenth of a second has no wake-up: a loop that woke now and then to poll would have none.
    @Test(
        "idle loops with rings between them stay asleep",
        arguments: [WaitStrategy.blocking, .adaptive, .spinning(for: .microseconds(100))])
    func rest(strategy: WaitStrategy) async throws {
        try await onBench(over: .ring) { bench in
            try bench.serving({ _, message in try? message.reply(message) }) { right, _, server in
                let own = ThreadRunLoop.current
                for loop in [own, server.loop] { loop.waitStrategy = strategy }
                for id in Int32(0)..<200 { _ = try right.ask(MachMessage(id: id)) }
                #expect(try hasRings(right))
                let keeper = RunLoopSource {}
                own.add(keeper)
                defer { keeper.invalidate() }
                let deadline = Watchdog.deadline
                while true {
                    let (before, ownBefore) = (server.loop.waitCounts, own.waitCounts)
                    #expect(own.run(for: .milliseconds(100)) == .timedOut)
                    let hasRested = server.loop.waitCounts == before && own.waitCounts.sleeps - ownBefore.sleeps <= 1
                    if hasRested { return }
                    if .now > deadline { return Watchdog.expired("a tenth of a second without a wake-up") }
                }
            }
        }
    }

    @Test("a busy connection gets rings, an idle one does not, and one that must have none never does")
    func earning() async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving({ _, message in try? message.reply(message) }) { right, port, _ in
                try connection(right).useRings(.earned)
                #expect(try right.ask(MachMessage(id: 1)).id == 1)
                #expect(try !hasRings(right))
                var count = 1
                while try !hasRings(right), count < 100_000 {
                    #expect(try right.ask(MachMessage(id: 1)).id == 1)
                    count += 1
                }
                #expect(count >= Tuning.earningCount && count < 100_000)
                let never = try bench.right(to: port)
                for _ in 0..<200 { _ = try never.ask(MachMessage()) }
                #expect(try !hasRings(never))
            }
        }
    }

    @Test("a process that only sends learns that its rings were accepted")
    func oneWay() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try connection(right).useRings(.always)
            var count: Int32 = 0
            while try !hasRings(right), count < 100 {
                try right.send(MachMessage(id: count))
                #expect(try port.next().id == count)
                count += 1
            }
            #expect(try hasRings(right))
        }
    }

    @Test("a port that ends reads what is in the ring, and what is sent later finds it dead", arguments: 0..<10)
    func portEnds(round: Int) async throws {
        try await onBench(over: .ring) { bench in
            let (mine, port) = (try bench.port(queueLimit: 1_000), try bench.port(queueLimit: 4))
            let right = try bench.right(to: port)
            let sender = runOnThread {
                var count = 0
                while true {
                    var message = MachMessage(id: Int32(count))
                    message.replyPort = mine.makeSendRight()
                    do throws(PortError) {
                        try right.send(message)
                    } catch {
                        return (count, error.code)
                    }
                    count += 1
                }
            }
            for id in Int32(0)..<Int32(round * 20 + 1) { #expect(try port.next().id == id) }
            port.invalidate()
            let (count, code) = try sender.join()
            #expect(code == .deadName)
            #expect(count > round * 20)
            #expect(right.isDead)
        }
    }

    @Test("a port that has ended answers what it owes, also to a requester that has not read the first answer")
    func pendingReplies() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let ring = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
            try ring.peer.send(PacketHeader(kind: .pathChange))
            for token in UInt64(1)...3 { try ring.write(MachMessage(id: Int32(token)), asks: token) }
            let requests = try (0..<3).map { _ in try port.next() }
            port.invalidate()
            for request in requests { try request.reply(MachMessage(id: request.id + 10)) }
            var answers: [Int32] = []
            while case .packet(let words, _) = ring.consumer.read() {
                if let header = PacketHeader(words), header.kind == .message { answers.append(header.messageID) }
            }
            #expect(answers == [11, 12, 13])
        }
    }

    @Test("where each packet would need a wake-up the socket is used, and the ring is tried again later")
    func events() async throws {
        try await onBench(over: .ring) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            func usesRing() throws -> Bool { try connection(right).sender.channel.path.withLock { $0.usesRing } }
            var number: Int32 = 0
            /// - Returns: how many messages it took, each read before the next, until the ring is used, or not.
            func messages(until isUsed: Bool) throws -> Int {
                var count = 0
                repeat {
                    number += 1
                    count += 1
                    try right.send(MachMessage(id: number))
                    #expect(try port.next().id == number)
                } while try usesRing() != isUsed && count < 10_000
                return count
            }
            if try !usesRing() { _ = try messages(until: true) }
            for _ in 0..<2 {
                #expect(try messages(until: false) <= Tuning.wakeUpLimit + 1)
                #expect(try messages(until: true) == Tuning.sleepyCount)
            }
        }
    }

    @Test("what follows the packet that switches to the ring is seen while replies are unread", arguments: [0, 60_000])
    func unreadReplies(bytes: Int) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 64)
            let ring = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
            try ring.peer.send(PacketHeader(kind: .pathChange))
            try ring.write(MachMessage(id: 1))
            _ = ring.producer.writeMark()
            try ring.peer.send(MachMessage(id: 2))
            for id in Int32(1)...2 { #expect(try port.next().id == id) }
            let member = try #require(port.localPort.sockets?.state.withLock { $0.members.values.first })
            if bytes > 0 {
                let header = PacketHeader(kind: .message, messageID: 9, totalLength: UInt64(bytes))
                let body = [UInt8](repeating: 0, count: bytes)[...]
                _ = try sysSendPacket(member.descriptor.rawValue, head: header.words, body: body, descriptors: [])
            }
            // There are as many as one poll reads: the packet that switches to the ring is its last.
            for id in Int32(100)..<131 { try ring.peer.send(MachMessage(id: id)) }
            try ring.peer.send(PacketHeader(kind: .pathChange))
            try ring.write(MachMessage(id: 3))
            for id in Int32(100)..<131 { #expect(try port.next().id == id) }
            #expect(try port.next().id == 3)
        }
    }

    @Test("a peer that switches to the ring before it has announced that is refused; old wake-ups count for nothing")
    func brokenPromise() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let ring = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
            try ring.peer.send(PacketHeader(kind: .pathChange))
            try ring.write(MachMessage(id: 1))
            _ = ring.producer.writeMark(before: 3)
            for id in Int32(2)...3 {
                try ring.peer.send(PacketHeader(kind: .wakeUp))
                try ring.peer.send(MachMessage(id: id))
            }
            for id in Int32(1)...3 { #expect(try port.next().id == id) }
            #expect(port.localPort.connectionCount == 1)
            try ring.peer.send(PacketHeader(kind: .pathChange))
            try ring.write(MachMessage(id: 4))
            #expect(try port.tryReceive() == nil)
            while port.localPort.connectionCount > 0 { port.localPort.receiveFromSockets() }
        }
    }

    #if PORT_FAULTS
    @Test(
        "a peer that goes with data unread resets the connection, between any two polls: what it sent is still read",
        arguments: 0..<4)
    func reset(after polls: Int) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let ring = try RingPeer(to: port, on: bench) { _ = port.localPort.receiveFromSockets() }
            try ring.peer.send(PacketHeader(kind: .pathChange))
            try ring.write(MachMessage(id: 1))
            let reset = SystemCallFaults.Rule(.recvmsg, .fail(ECONNRESET), skipping: polls)
            let (ids, hits) = try SystemCallFaults.with([reset]) {
                try (0..<4).compactMap { _ in try port.tryReceive()?.id }
            }
            #expect(ids == [1] && hits == 1)
            try ring.write(MachMessage(id: 2))
            #expect(try port.next().id == 2)
        }
    }

    @Test(
        "where the kernel refuses memory for rings the socket goes on",
        arguments: [SystemCall.memfd_create, .ftruncate, .fcntl, .mmap])
    func refused(call: SystemCall) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try connection(right).useRings(.always)
            let (_, hits) = try SystemCallFaults.with([.init(call, .fail(ENOMEM))]) {
                try right.send(MachMessage(id: 1))
            }
            #expect(hits == 1)
            for id in Int32(2)..<5 { try right.send(MachMessage(id: id)) }
            for id in Int32(1)..<5 { #expect(try port.next().id == id) }
            #expect(try !hasRings(right))
        }
    }

    @Test("a right whose process cannot make rings gets them when its traffic calls for them again")
    func shortOf() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try connection(right).useRings(.always)
            for call in [SystemCall.memfd_create, .socketpair] {
                let (_, hits) = try SystemCallFaults.with([.init(call, .fail(EMFILE))]) {
                    try right.send(MachMessage(id: 1))
                }
                #expect(hits == 1)
                #expect(try port.next().id == 1 && !connection(right).awaitsRingAnswer)
            }
            try right.send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
            #expect(try connection(right).awaitsRingAnswer)
        }
    }

    @Test("where the other end cannot map the memory the socket goes on", arguments: [SystemCall.fcntl, .fstat, .mmap])
    func refusedByOther(call: SystemCall) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try connection(right).useRings(.always)
            try right.send(MachMessage(id: 1))
            let (id, hits) = try SystemCallFaults.with([.init(call, .fail(ENOMEM))]) { try port.next().id }
            #expect(id == 1 && hits == 1)
            try connection(right).receiveUnlessReceiving()
            #expect(try !connection(right).awaitsRingAnswer)
            for id in Int32(2)..<5 { try right.send(MachMessage(id: id)) }
            for id in Int32(2)..<5 { #expect(try port.next().id == id) }
        }
    }

    @Test("a stream to a consumer that has something to read costs no system call per message")
    func stream() async throws {
        try await onBench(over: .ring) { bench in
            // The packet that switches to the ring, and one wake-up; the number of the connection, and the question for
            // room; at each tick of a clock a check whether the
            // consumer lives, so that a sender that was delayed starts over.
            var (last, total) = (nil as (port: MachPort, right: SendRight)?, Int.max)
            for _ in 0..<20 where total >= 100 {
                let port = try bench.port(queueLimit: 2_000)
                let right = try bench.right(to: port)
                let (_, sent) = try SystemCallFaults.counting { () throws in
                    for id in Int32(0)..<1_000 { try right.send(MachMessage(id: id, bytes: pattern(64))) }
                }
                #expect(sent[.sendmsg, default: 0] == 4)
                (last, total) = ((port, right), sent.values.reduce(0, +))
            }
            #expect(total < 100)
            let (port, right) = try #require(last)
            let (_, received) = try SystemCallFaults.counting { () throws in
                for id in Int32(0)..<1_000 { #expect(try port.next().id == id) }
            }
            #expect(received.values.reduce(0, +) < 200)
            withExtendedLifetime(right) {}
        }
    }

    @Test("a request to a port that sleeps costs no more system calls than over a socket")
    func sleeping() async throws {
        try await onBench(over: .socket) { bench in
            // Each side sends when the other sleeps.
            let (own, ownSleeps, servedSleeps) = (ThreadRunLoop.current, Recorder<Int>(), Recorder<Int>())
            let reply: MachPort.Handler = { _, message in
                own.waitUntilAsleep(after: ownSleeps.takeAll().last ?? 0)
                servedSleeps.append(ThreadRunLoop.current.waitCounts.sleeps)
                try? message.reply(message)
            }
            try bench.serving(reply) { right, port, worker in
                worker.loop.waitStrategy = .blocking
                own.waitStrategy = .blocking
                let withRing = try Bench(transport: .ring, directory: bench.directory, far: .none).right(to: port)
                #expect(try hasRings(withRing))
                func ask(_ right: SendRight) throws {
                    ownSleeps.append(own.waitCounts.sleeps)
                    _ = try right.ask(MachMessage())
                    worker.loop.waitUntilAsleep(after: servedSleeps.takeAll().last ?? 0)
                }
                let counts = try [right, withRing].map { right in
                    for _ in 0..<5 { try ask(right) }
                    let (_, calls) = try SystemCallFaults.counting { () throws in
                        for _ in 0..<100 { try ask(right) }
                    }
                    // At each tick of a clock a check whether the consumer lives: how many depends on the duration.
                    return calls.values.reduce(0, +) - calls[.poll, default: 0]
                }
                #expect(counts[1] <= counts[0] + 2, "\(counts)")
            }
        }
    }

    @Test("a reply that comes before the requester sleeps needs no wake-up, as it polls before it wakes the port")
    func earlyReply() async throws {
        try await onBench(over: .socket) { bench in
            let (asked, sleeps, requester) = (Recorder<Int32>(), Recorder<Int>(), ThreadRunLoop.current)
            let reply: MachPort.Handler = { _, message in
                try? message.reply(message)
                sleeps.append(ThreadRunLoop.current.waitCounts.sleeps)
            }
            try bench.serving(reply) { _, port, worker in
                worker.loop.waitStrategy = .blocking
                requester.waitStrategy = .blocking
                let right = try Bench(transport: .ring, directory: bench.directory, far: .none).right(to: port)
                #expect(try hasRings(right))
                func ask(_ id: Int32) throws {
                    sleeps.waitUntilCount(asked.count)
                    worker.loop.waitUntilAsleep(after: sleeps.elements.last ?? 0)
                    asked.append(id)
                    #expect(try right.ask(MachMessage(id: id, bytes: pattern(64))).id == id)
                }
                for id in Int32(0)..<5 { try ask(id) }
                // The port's thread is woken by other means, and has replied when the requester would wake it.
                let early = SystemCallFaults.Rule(
                    .shutdown,
                    .precede {
                        worker.loop.wakeUp()
                        sleeps.waitUntilCount(asked.count)
                    }, times: .max)
                let (_, calls) = try SystemCallFaults.counting(with: [early]) { () throws in
                    for id in Int32(5)..<25 { try ask(id) }
                }
                // The wake-up of the request before may keep the port awake: then none is sent, and a reply may need one.
                #expect(calls[.shutdown, default: 0] > 0, "\(calls)")
                #expect(calls[.recvmsg, default: 0] + calls[.sendmsg, default: 0] < 20, "\(calls)")
            }
        }
    }
    #endif
}
