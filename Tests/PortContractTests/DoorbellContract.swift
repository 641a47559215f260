// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CoreFoundation
import Dispatch
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("doorbells", .foreignLoops) struct DoorbellContract {
    private func isReadable(_ doorbell: PortDoorbell) throws -> Bool {
        try !sysPoll(doorbell.descriptor, .readable, until: .distantPast).isEmpty
    }

    @Test("a doorbell is readable exactly while messages wait", arguments: TestTransport.allCases)
    func exactly(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 2)
            let right = try bench.right(to: port)
            #expect(try port.tryReceive()?.id == nil)  // takes the connection
            let doorbell = try port.doorbell()
            #expect(try port.doorbell() === doorbell)
            for round in 0..<3 {
                #expect(try !isReadable(doorbell))
                for id in Int32(0)...Int32(round) {
                    #expect(try right.trySend(MachMessage(id: id)) == (id < 2 || transport == .socket))
                }
                while let message = try port.tryReceive() {
                    _ = message
                    // What is still in the socket counts as well as what is in the queue.
                    if port.queueCount > 0 { #expect(try isReadable(doorbell)) }
                }
            }
            #expect(try !isReadable(doorbell))
            try right.send(MachMessage())
            #expect(try isReadable(doorbell))
            port.invalidate()
            #expect(try isReadable(doorbell))
            #expect(portError { () throws(PortError) in _ = try port.tryReceive() }?.code == .invalidPort)
            #expect(portError { () throws(PortError) in _ = try port.doorbell() } == nil)
        }
    }

    @Test("a doorbell stays readable when a message takes the place of an older one")
    func replaced() async throws {
        try await onBench(over: .memory) { _ in
            let port = MachPort(queuePolicy: .keepLatest)
            let (right, doorbell) = (port.makeSendRight(), try port.doorbell())
            for id in Int32(1)...2 {
                try right.send(MachMessage(id: id))
                #expect(try isReadable(doorbell))
            }
            #expect(try port.tryReceive()?.id == 2)
            #expect(try !isReadable(doorbell))
        }
    }

    @Test("a doorbell that is made late, or before the sockets, tells what waits", arguments: TestTransport.allCases)
    func late(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = MachPort()
            try port.makeSendRight().send(MachMessage(id: 1))
            let doorbell = try port.doorbell()
            #expect(try isReadable(doorbell))
            #expect(try port.next().id == 1)
            #expect(try !isReadable(doorbell))
            try bench.right(to: port).send(MachMessage(id: 2))
            #expect(try isReadable(doorbell))
            #expect(try port.next().id == 2)
        }
    }

    @Test("an epoll loop gets every message", arguments: TestTransport.allCases)
    func epoll(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 3)
            let right = try bench.right(to: port)
            let doorbell = try port.doorbell()
            let set = try EpollSet()
            try set.add(doorbell.descriptor, .readable, key: 7)
            let sender = runOnThread { for id in Int32(0)..<200 { try right.send(MachMessage(id: id)) } }
            var ids: [Int32] = []
            while ids.count < 200 {
                let reports = set.wait(until: Watchdog.deadline)
                #expect(reports.map(\.key) == [7])
                if reports.isEmpty { break }
                // One a turn: the set is level-triggered.
                if let message = try port.tryReceive() { ids.append(message.id) }
            }
            #expect(ids == Array(0..<200))
            try sender.join()
        }
    }

    @Test("a dispatch source gets every message", arguments: TestTransport.allCases)
    func dispatch(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 3)
            let right = try bench.right(to: port)
            let doorbell = try port.doorbell()
            let (ids, gone) = (Recorder<Int32>(), Gate("the end of the dispatch source"))
            let queue = DispatchQueue(label: "doorbell")
            let source = DispatchSource.makeReadSource(fileDescriptor: doorbell.descriptor, queue: queue)
            source.setEventHandler { while let message = try? port.tryReceive() { ids.append(message.id) } }
            source.setCancelHandler { gone.open() }
            source.activate()
            for id in Int32(0)..<200 { try right.send(MachMessage(id: id)) }
            #expect(ids.waitUntilCount(200) == Array(0..<200))
            source.cancel()
            gone.wait()
        }
    }

    @Test("CoreFoundation's run loop gets every message", arguments: TestTransport.allCases)
    func coreFoundation(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port(queueLimit: 3)
            let right = try bench.right(to: port)
            let info = ForeignInfo(port, try port.doorbell().descriptor)
            let source = try #require(info.makeSource())
            CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode)
            let sender = runOnThread { for id in Int32(0)..<200 { try right.send(MachMessage(id: id)) } }
            while info.ids.count < 200 {
                let result = CFRunLoopRunInMode(kCFRunLoopDefaultMode, 60, true)
                #expect(result == .handledSource)
                if result != .handledSource { break }
            }
            #expect(info.ids.elements == Array(0..<200))
            try sender.join()
            CFRunLoopSourceInvalidate(source)
        }
    }

    @Test("with many senders and receivers nobody sleeps while a message waits", arguments: TestTransport.allCases)
    func stress(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (senders, receivers, count) = (3, 3, 300)
            let port = try bench.port(queueLimit: 5)
            let doorbell = try port.doorbell()
            let taken = Atomic<Int>(0)
            let threads = try (0..<senders).map { _ in
                let right = try bench.right(to: port)
                return runOnThread { for id in 0..<count { try right.send(MachMessage(id: Int32(id))) } }
            }
            let takers = (0..<receivers).map { _ in
                runOnThread {
                    while taken.load(ordering: .acquiring) < senders * count {
                        // A doorbell that misses a message would let everybody sleep here for ever.
                        let seen = try sysPoll(doorbell.descriptor, .readable, until: Watchdog.deadline)
                        if seen.isEmpty { return Watchdog.expired("the doorbell did not ring") }
                        guard (try? port.tryReceive()) != nil else { continue }
                        let total = taken.add(1, ordering: .acquiringAndReleasing).newValue
                        if total == senders * count { port.invalidate() }  // wakes the others
                    }
                }
            }
            for thread in threads { try thread.join() }
            for thread in takers { try thread.join() }
            #expect(taken.load(ordering: .acquiring) == senders * count)
        }
    }
}

extension Trait where Self == Census {
    /// The census, for tests of other loops: CoreFoundation's main loop, which it makes with the first one, stays.
    fileprivate static var foreignLoops: Self {
        .census(
            settles: true,
            warmingUp: {
                SpareDescriptor.shared.keep()
                _ = CFRunLoopGetMain()
            })
    }
}

/// What CoreFoundation's source gets: the port, and where to put the messages.
private final class ForeignInfo: Sendable {
    let port: MachPort
    let descriptor: CInt
    let ids = Recorder<Int32>()

    init(_ port: MachPort, _ descriptor: CInt) {
        self.port = port
        self.descriptor = descriptor
    }

    static func at(_ pointer: UnsafeMutableRawPointer?) -> ForeignInfo? {
        pointer.map { Unmanaged<ForeignInfo>.fromOpaque($0).takeUnretainedValue() }
    }

    /// A source for the doorbell. CoreFoundation is told of changes only, so it takes messages until there is none.
    func makeSource() -> CFRunLoopSource? {
        var context = CFRunLoopSourceContext1()
        context.version = 1
        context.info = Unmanaged.passUnretained(self).toOpaque()
        context.getPort = { ForeignInfo.at($0)?.descriptor ?? -1 }
        context.perform = { pointer in
            guard let info = ForeignInfo.at(pointer) else { return }
            while let message = try? info.port.tryReceive() { info.ids.append(message.id) }
        }
        return withUnsafeMutablePointer(to: &context) { context in
            context.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
                CFRunLoopSourceCreate(nil, 0, $0)
            }
        }
    }
}
