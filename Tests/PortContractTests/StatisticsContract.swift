// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("statistics", .tasks) struct StatisticsContract {
    @Test("a port counts what has come, what waits, and the most that waited", arguments: TestTransport.inProcess)
    func counts(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 8)
            let right = try bench.right(to: port)
            for size in 1...3 { try right.send(MachMessage(id: 1, bytes: [UInt8](repeating: 0, count: size))) }
            try right.send(MachMessage(components: [.bytes([1]), .right(right), .bytes([2, 3])]))
            for _ in 0..<2 { _ = try port.next() }
            port.localPort.receiveFromSockets()
            var expected = PortStatistics()
            (expected.messageCount, expected.byteCount) = (4, 9)
            (expected.queueCount, expected.queueLimit) = (2, 8)
            expected.queueHighWaterMark = port.queueHighWaterMark
            expected.clientCount = transport == .memory ? 0 : 1
            #expect(port.statistics == expected)
            port.resetQueueHighWaterMark()
            #expect(port.statistics.queueHighWaterMark == 2)
        }
    }

    @Test("what the policy drops is counted", arguments: TestTransport.inProcess)
    func drops(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 2, policy: .dropOldest)
            let right = try bench.right(to: port)
            for id in 0..<Int32(5) { try right.send(MachMessage(id: id)) }
            port.localPort.receiveFromSockets()
            #expect(port.statistics.messageCount == 5 && port.statistics.droppedMessageCount == 3)
            #expect(port.statistics.queueCount == 2)
        }
    }

    @Test("a right gets the statistics of its port, and the query is no message", arguments: TestTransport.withName)
    func asked(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving(.echo) { right, _ in
                _ = try right.ask(MachMessage(id: 1, text: "hello"))
                for _ in 0..<3 {
                    let answered = try #require(try right.statistics(within: longTimeout))
                    #expect(answered.messageCount == 1 && answered.byteCount == 5)
                    #expect(answered.queueCount == 0 && answered.queueLimit == MachPort.defaultQueueLimit)
                    #expect(answered.clientCount == (transport == .memory ? 0 : 1))
                }
                // The port's loop waits now and then.
                let deadline = Watchdog.deadline
                while try right.statistics(within: longTimeout)?.waits == WaitCounts(), .now < deadline {
                    _ = try right.ask(MachMessage(id: 1))
                }
                #expect(try right.statistics(within: longTimeout)?.waits != WaitCounts())
            }
        }
    }

    @Test("a port that no thread serves is answered for, and what has arrived counts as waiting")
    func busy() async throws {
        try await onBench(over: .process) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            #expect(try right.statistics(within: longTimeout)?.queueCount == 0)
            try right.send(MachMessage(id: 1))
            #expect(try right.statistics(within: longTimeout)?.queueCount == 1)
            #expect(try port.next().id == 1)
        }
    }

    @Test(
        "a task gets the statistics, too; of an owner that answers nothing it gets none at its limit, or its cancellation"
    )
    func inTask() async throws {
        try await onBench(over: .process) { bench in
            let answers = Recorder<PortStatistics?>("answers")
            let errors = Recorder<PortError.Code>("errors")
            func ask(_ right: SendRight, within limit: Duration) -> Task<Void, Never> {
                Task {
                    do throws(PortError) {
                        answers.append(try await right.statistics(within: limit))
                    } catch {
                        errors.append(error.code)
                    }
                }
            }
            try bench.serving(.echo) { right, _ in
                _ = try right.ask(MachMessage(id: 1, text: "hello"))
                _ = ask(right, within: longTimeout)
                #expect(answers.waitUntilCount(1).first??.byteCount == 5)
            }
            let listener = try RawListener(bench.directory.path + "/silent")
            let busy = SendRight(RemotePort(listener.address))
            _ = ask(busy, within: .milliseconds(1))
            #expect(answers.waitUntilCount(2).last == .some(nil))
            for isEarly in [true, false] {
                let cancelled = ask(busy, within: .seconds(100_000))
                if !isEarly { for _ in 0..<100 { sched_yield() } }
                cancelled.cancel()
            }
            #expect(errors.waitUntilCount(2) == [.cancelled, .cancelled])
            #expect(answers.count == 2)
            withExtendedLifetime(listener) {}
        }
    }

    @Test("a port that has gone reports nothing", arguments: TestTransport.withName)
    func gone(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort()
            let right = try bench.right(to: port)
            try port.invalidate()
            #expect(try right.statistics(within: .milliseconds(1)) == nil)
        }
    }

    @Test("an owner that does not know the queries, and refuses them, reports nothing and is not tapped")
    func older() async throws {
        try await onBench(over: .socket) { bench in
            let listener = try RawListener(bench.directory.path + "/older")
            let address = listener.address
            let asking = runOnThread(name: "asking") { try StatisticsQuery.ask([address], until: Watchdog.deadline) }
            let asked = try listener.accept()
            #expect(try asked.next()?.kind == .statistics)
            try asked.send(PacketHeader(kind: .refused, messageID: 18))
            #expect(try asking.join() == [.silent])
            let tapping = runOnThread(name: "tapping") {
                #expect(
                    portError { () throws(PortError) in
                        _ = try MessageTap(address, byteLimit: 64, until: Watchdog.deadline)
                    }?.code == .notWatchable)
            }
            let tapped = try listener.accept()
            #expect(try tapped.next()?.kind == .tap)
            try tapped.send(PacketHeader(kind: .refused, messageID: 18))
            try tapping.join()
        }
    }

    @Test("all are asked, however many do not answer; those that live are busy, those that answer have statistics")
    func many() async throws {
        try await onBench(over: .socket) { bench in
            let count = 2 * Tuning.simultaneousQueries + 3
            let listeners = try (0..<count).map { try RawListener(bench.directory.path + "/stuck\($0)") }
            let port = try bench.port()
            let gone = PortAddress(path: bench.directory.path + "/gone")
            let addresses = listeners.map(\.address) + [gone, try port.localPort.address(in: bench.directory)]
            let answers = try StatisticsQuery.ask(addresses, until: .after(.milliseconds(10)))
            #expect(answers.prefix(count) == Array(repeating: .busy, count: count)[...])
            #expect(answers.suffix(2) == [.silent, .answered(port.statistics)])
            for listener in listeners { #expect(try listener.accept().next()?.kind == .statistics) }
        }
    }

    @Test("an owner that answers late gets its share of the time when others wait for its slot")
    func late() async throws {
        try await onBench(over: .socket) { bench in
            let count = Tuning.simultaneousQueries + 1
            let listeners = try (0..<count).map { try RawListener(bench.directory.path + "/late\($0)") }
            let addresses = listeners.map(\.address)
            let asking = runOnThread(name: "asking") { try StatisticsQuery.ask(addresses, until: Watchdog.deadline) }
            // The last is asked when one of the others has freed its slot: this one ends its connection.
            let first = try listeners[0].accept()
            #expect(try first.next()?.kind == .statistics)
            first.end()
            let last = try listeners[count - 1].accept()
            #expect(try last.next()?.kind == .statistics)
            let statistics = PortStatistics()
            for (index, listener) in listeners.enumerated().dropFirst() {
                let peer = try index == count - 1 ? last : listener.accept()
                if index < count - 1 { #expect(try peer.next()?.kind == .statistics) }
                let header = PacketHeader(kind: .statistics, answers: 1)
                #expect(
                    try sysSendPacket(
                        peer.socket.rawValue, head: header.words, body: statistics.payload[...], descriptors: [])
                        == .sent)
            }
            let answers = try asking.join()
            #expect(answers.first == .silent && answers.dropFirst().allSatisfy { $0 == .answered(statistics) })
        }
    }

    @Test("a client that may be arriving is not counted, and yet holds back the no-senders notice")
    func accepting() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let answered = Counter()
            try port.notifyWhenNoSenders(on: .current) {
                answered.increment()
                ThreadRunLoop.current.stop()
            }
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            _ = try port.next()
            port.localPort.willAccept()
            #expect(port.statistics.clientCount == 1)
            peer.end()
            port.localPort.receiveFromSockets()
            #expect(port.statistics.clientCount == 0)
            _ = ThreadRunLoop.current.run(for: .zero)
            #expect(answered.value == 0)
            port.localPort.didAccept()
            // The I/O thread may be accepting at this moment, too.
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .stopped)
            #expect(answered.value == 1)
        }
    }

    @Test("a process that only queries is none of the port's senders: its coming and going ends nothing")
    func noSender() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let answered = Counter()
            try port.notifyWhenNoSenders(on: .current) { answered.increment() }
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(PacketHeader(kind: .statistics, asks: 1))
            port.localPort.receiveFromSockets()
            #expect(try peer.next()?.kind == .statistics)
            #expect(port.statistics.clientCount == 0)
            peer.end()
            port.localPort.receiveFromSockets()
            _ = ThreadRunLoop.current.run(for: .zero)
            #expect(answered.value == 0)

            // One that sends a message after that is a sender.
            let other = try RawPeer(to: port, on: bench)
            try other.send(PacketHeader(kind: .statistics, asks: 1))
            port.localPort.receiveFromSockets()
            try other.send(MachMessage(id: 1))
            _ = try port.next()
            #expect(port.statistics.clientCount == 1)
            other.end()
            port.localPort.receiveFromSockets()
            // The thread that serves connections in the background may have received the end, and notify soon.
            while answered.value == 0 { _ = ThreadRunLoop.current.run(for: .milliseconds(1)) }
            #expect(answered.value == 1)
        }
    }
}

extension RawPeer {
    /// Ends the connection; the other end sees it at once.
    func end() { sysShutDown(socket.rawValue) }
}
