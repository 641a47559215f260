// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("queues that change, drop and count", .contract) struct QueueChangeContract {
    @Test("a lower limit keeps what waits, and takes effect when that is read", arguments: TestTransport.withName)
    func lower(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 8)
            let local = port.makeSendRight()
            for id in Int32(0)..<8 { try local.send(MachMessage(id: id)) }
            port.setQueueLimit(2)
            #expect(port.queueLimit == 2)
            #expect(port.queueCount == 8)
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<7 {
                #expect(try !local.trySend(MachMessage(id: -1)))
                #expect(try port.next().id == id)
            }
            #expect(try right.trySend(MachMessage(id: 8)))
            #expect(try port.next().id == 7)
            #expect(try port.next().id == 8)
        }
    }

    @Test("a higher limit lets waiting senders in, in their order, before it returns")
    func higher() async throws {
        try await onBench(over: .memory) { bench in
            let (port, right, _) = try bench.full()
            let senders = (Int32(1)...5).map { id in
                defer { port.localPort.waitForSenders(Int(id)) }
                return runOnThread { try right.send(MachMessage(id: id)) }
            }
            port.setQueueLimit(4)
            #expect(port.queueCount == 4)
            for sender in senders[..<3] { try sender.join() }
            #expect(!senders[3].hasEnded)
            port.setQueueLimit(6)
            for sender in senders[3...] { try sender.join() }
            #expect(try (0..<6).map { _ in try port.next().id } == [0, 1, 2, 3, 4, 5])
        }
    }

    @Test("the high-water mark is the most that waited, until it is reset", arguments: TestTransport.allCases)
    func highWater(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 10)
            let right = try bench.farSender(to: port)
            #expect(port.queueHighWaterMark == 0)
            for id in Int32(0)..<7 { try right.send(MachMessage(id: id)) }
            port.localPort.receiveFromSockets()
            for id in Int32(0)..<5 { #expect(try port.next().id == id) }
            #expect(port.queueHighWaterMark == 7)
            #expect(port.resetQueueHighWaterMark() == 7)
            #expect(port.queueHighWaterMark == 2)
            #expect(port.droppedMessageCount == 0)
        }
    }

    @Test("drop-oldest keeps the newest messages, in order", arguments: TestTransport.allCases)
    func dropOldest(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 3, policy: .dropOldest)
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<10 {
                #expect(try right.trySend(MachMessage(id: id)))
                port.localPort.receiveFromSockets()
            }
            #expect(port.queuePolicy == .dropOldest)
            #expect(port.queueCount == 3)
            #expect(port.droppedMessageCount == 7)
            #expect(port.queueHighWaterMark == 3)
            #expect(try (0..<3).map { _ in try port.next().id } == [7, 8, 9])
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("keep-latest keeps one message, the newest", arguments: TestTransport.allCases)
    func keepLatest(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 64, policy: .keepLatest)
            let right = try bench.farSender(to: port)
            for id in Int32(0)..<10 {
                #expect(try right.trySend(MachMessage(id: id)))
                port.localPort.receiveFromSockets()
                if id == 4 { #expect(try port.next().id == 4) }
            }
            #expect(port.queueCount == 1)
            #expect(port.droppedMessageCount == 8)
            #expect(try port.next().id == 9)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "what comes through a send-once right drops nothing, and no policy drops it",
        arguments: TestTransport.allCases,
        [QueuePolicy.dropOldest, .keepLatest])
    func replies(over transport: TestTransport, policy: QueuePolicy) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.port(queueLimit: 1, policy: policy), try bench.farPort())
            try bench.right(to: other).send(carrying(port.makeSendOnceRight()))
            try other.next().reply(MachMessage(id: 100))
            port.localPort.receiveFromSockets()
            let right = port.makeSendRight()
            for id in Int32(1)...2 { try right.send(MachMessage(id: id), within: .zero) }
            port.makeSendOnceRight().drop()
            #expect(port.droppedMessageCount == 1)
            #expect(try port.next().id == 100)
            #expect(try port.next().id == 2)
            #expect(try port.next().id == MachMessage.sendOnceNotification)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("the requester of a dropped message learns it at once", arguments: TestTransport.allCases)
    func droppedRequest(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(policy: .keepLatest)
            let right = try bench.farSender(to: port)
            let requester = runOnThread {
                portError { () throws(PortError) in _ = try right.ask(MachMessage(id: 1)) }
            }
            let deadline = Watchdog.deadline
            while port.queueCount == 0, .now < deadline {
                port.localPort.receiveFromSockets()
                sched_yield()
            }
            try port.makeSendRight().send(MachMessage(id: 2))
            let error = try requester.join()
            #expect(error?.code == .messageDropped && error?.delivery == .unread)
            #expect(try port.next().id == 2)
        }
    }

    @Test("the descriptors and rights in a dropped message go with it", arguments: TestTransport.inProcess)
    func droppedContents(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, other) = (try bench.port(queueLimit: 1, policy: .dropOldest), try bench.port())
            let right = try bench.right(to: port)
            let notices = Counter("no-senders notices")
            // Two messages first: connections and what they need are there from then on.
            for _ in 0..<2 { try right.send(MachMessage(id: 0)) }
            port.localPort.receiveFromSockets()
            ThreadRunLoop.current.run(for: .zero)
            waitForIOThread()
            try expectNoNewDescriptors {
                let before = openDescriptors().count
                for _ in 0..<4 {
                    let descriptor = SharedDescriptor(owning: dup(0))
                    try right.send(MachMessage(components: [.descriptor(descriptor), .right(other.makeSendRight())]))
                    port.localPort.receiveFromSockets()
                }
                #expect(openDescriptors().count == before + 1)
                try other.notifyWhenNoSenders { notices.increment() }
                ThreadRunLoop.current.run(for: .zero)
                #expect(notices.value == 0)
                try right.send(MachMessage(id: 9))
                port.localPort.receiveFromSockets()
                ThreadRunLoop.current.run(for: .zero)
                // Over sockets the port has an address, to which a client may still come.
                #expect(notices.value == (transport == .memory ? 1 : 0))
                #expect(try port.tryReceive()?.id == 9)
            }
        }
    }

    @Test("socket clients are served at a port whose queue senders of its own process keep full")
    func fairness() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 1)
            let stop = Gate("the end")
            let local = port.makeSendRight()
            let hot = (0..<3).map { _ in
                runOnThread {
                    while !stop.isOpen {
                        let error = portError { () throws(PortError) in try local.send(MachMessage(id: 0)) }
                        if error != nil { return }
                    }
                }
            }
            let clients = try (Int32(1)...3).map { client in
                let right = try bench.right(to: port)
                return runOnThread {
                    for _ in 0..<20 { try right.send(MachMessage(id: client)) }
                }
            }
            var counts: [Int32: Int] = [:]
            while counts[1, default: 0] < 20 || counts[2, default: 0] < 20 || counts[3, default: 0] < 20 {
                // Of every two slots at most one goes to the local senders, once the clients are seen to wait.
                // The port knows the numbers of their connections after the first; the last ones are soon done.
                let allWait = (Int32(1)...3).allSatisfy { (2..<18).contains(counts[$0, default: 0]) }
                if allWait { port.localPort.waitForSenders(6) }
                var seen: Set<Int32> = []
                for _ in 0..<13 {
                    let id = try port.next().id
                    counts[id, default: 0] += 1
                    seen.insert(id)
                    if seen.isSuperset(of: 1...3) { break }
                }
                if allWait { #expect(seen.isSuperset(of: 1...3)) }
            }
            #expect(counts.filter { $0.key > 0 } == [1: 20, 2: 20, 3: 20])
            for client in clients { try client.join() }
            stop.open()
            port.invalidate()
            for thread in hot { try thread.join() }
        }
    }

    @Test("a sender that never waits does not keep socket clients out either")
    func fairnessToTrying() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(queueLimit: 2)
            let stop = Gate("the end")
            let local = port.makeSendRight()
            let hot = runOnThread {
                while !stop.isOpen { if (try? local.trySend(MachMessage(id: 0))) == nil { return } }
            }
            try bench.right(to: port).send(MachMessage(id: 1))
            var total = 0
            while try port.next().id != 1, total < 10_000 { total += 1 }
            #expect(total < 10_000)
            stop.open()
            port.invalidate()
            try hot.join()
        }
    }

    @Test("a wait for room ends at its deadline, not before", arguments: TestTransport.withName)
    func deadline(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (port, right, _) = try bench.farFull()
            defer { try? port.invalidate() }  // it lives until here
            for limit in [Duration.milliseconds(1), .milliseconds(20)] {
                let due = MonotonicInstant.after(limit)
                let error = portError { () throws(PortError) in
                    try right.send(MachMessage(id: -1, bytes: [UInt8](repeating: 1, count: 3000)), within: limit)
                }
                #expect(error?.code == .sendTimedOut)
                #expect(due <= .now)
            }
        }
    }
}
