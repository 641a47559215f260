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

/// Which ends of pipes are checked, shared, retained and closed.
@Suite("the ends of pipes that come with rights", .contract) struct PresenceEndTests {
    /// A port of another process that nothing has connected to.
    private static func farPort(_ bench: Bench) -> RemotePort {
        RemotePort(PortAddress(path: "\(bench.directory.path)/far"))
    }

    /// Another descriptor of the same end, as one that came in a message.
    private static func received(_ end: SharedDescriptor) throws -> SharedDescriptor {
        SharedDescriptor(received: FileDescriptor(owning: try end.duplicate()))
    }

    /// Whether all write ends of a pipe are closed, once those that wait for that are.
    private static func hasHungUp(_ pipe: SharedDescriptor) throws -> Bool {
        waitUntilDescriptorsAreClosed()
        return try sysPoll(pipe.rawValue, [], until: .distantPast).contains(.hangUp)
    }

    @Test("each right of a message has its own end, unless it is the same one")
    func distinct() async throws {
        try await onBench(over: .socket) { bench in
            let remote = Self.farPort(bench)
            let (worthless, honest) = (try PresencePipe(), try PresencePipe())
            let first = SendRight(remote, with: ReceivedEnd(worthless.writing))
            let second = SendRight(remote, with: ReceivedEnd(honest.writing))
            let outgoing = try OutgoingMessage(
                MachMessage(components: [first, second, second, first].map { .right($0) }, replyPort: second))
            // The reply port's, the first one's, the second one's, which the third shares, and the first one's again.
            let sent = [honest, worthless, honest, worthless].map(\.writing)
            let isAsExpected = outgoing.descriptors.elementsEqual(sent, by: ===)
            #expect(isAsExpected)
            var kinds: [UInt8] = []
            var rest = outgoing.payload[...]
            while rest.count > 8 {
                kinds.append(rest[rest.startIndex])
                rest = rest.dropFirst(8 + Int(rest[rest.startIndex + 4]))
            }
            #expect(kinds == [6, 5, 5, 7, 5])
            let encoded = EncodedMessage(
                id: 0, componentCount: 4, payload: outgoing.payload, descriptors: outgoing.descriptors)
            let message = try #require(
                encoded.decoded { SendRight(DeadPort($0), with: $1.flatMap { ReceivedEnd($0) }) })
            let ends = try (message.rights + [try #require(message.replyPort)]).map { try $0.export() }
            let expected = [worthless, honest, honest, worthless, honest].map(\.writing)
            let isSame = ends.elementsEqual(expected) { $0 === $1 }
            #expect(isSame)
        }
    }

    @Test("of equal rights with different ends any may be released, and all count until the last one is")
    func equal() async throws {
        try await onBench(over: .socket) { bench in
            let remote = Self.farPort(bench)
            let worthless = try PresencePipe()
            let first = try Self.received(worthless.writing)
            var rights: Set<SendRight> = [SendRight(remote, with: ReceivedEnd(first))]
            /// - Returns: the read end of the pipe whose only write end came with a right.
            func receive() throws -> SharedDescriptor {
                let honest = try PresencePipe()
                let end = ReceivedEnd(try Self.received(honest.writing), from: .process(1))
                rights.insert(SendRight(remote, with: end))
                return honest.reading
            }
            let reading = try receive()
            #expect(rights.count == 1)
            #expect(try !Self.hasHungUp(reading))
            // Nor do others replace it that another process sends.
            for _ in 0..<3 * Tuning.keptEnds {
                rights.insert(SendRight(remote, with: ReceivedEnd(try PresencePipe().writing, from: .process(2))))
            }
            #expect(try !Self.hasHungUp(reading))
            // The right that is left travels on with its own end.
            let outgoing = try OutgoingMessage(MachMessage(components: rights.map { .right($0) }))
            let isOwn = outgoing.descriptors.elementsEqual([first], by: ===)
            #expect(isOwn)
        }
    }

    @Test("of ends of equally many processes the first stays, whichever come later")
    func tie() async throws {
        try await onBench(over: .socket) { bench in
            let remote = Self.farPort(bench)
            let retained = SendRight(remote)
            func receive(from process: Int32) throws -> SharedDescriptor {
                let pipe = try PresencePipe()
                _ = SendRight(remote, with: ReceivedEnd(try Self.received(pipe.writing), from: .process(process)))
                return pipe.reading
            }
            let first = try receive(from: 1)
            for process in 2...Int32(3 * Tuning.keptEnds) { _ = try receive(from: process) }
            #expect(try !Self.hasHungUp(first))
            withExtendedLifetime(retained) {}
        }
    }

    @Test("a right without an end to a port that is gone travels with the last one that came")
    func dead() async throws {
        try await onBench(over: .socket) { bench in
            let (port, pipe) = (try bench.port(), try PresencePipe())
            let remote = try bench.connect(to: port.localPort.address(in: bench.directory))
            let rights = [SendRight(remote, with: ReceivedEnd(pipe.writing)), SendRight(remote)]
            port.invalidate()
            #expect(try rights[1].export() === pipe.writing)
        }
    }

    @Test("a port that has ended retains nothing for a read end that comes late")
    func lateReadEnd() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            port.invalidate()
            port.localPort.addPipe(1)
            #expect(port.localPort.state.withLock { !$0.hasColdState || !$0.coldState.pipes.contains(1) })
        }
    }

    @Test("the last right to a port closes all ends that came with rights to it")
    func lastRight() async throws {
        try await onBench(over: .socket) { bench in
            try expectNoNewDescriptors {
                do {
                    let remote = Self.farPort(bench)
                    for _ in 0..<3 * Tuning.keptEnds {
                        _ = SendRight(remote, with: ReceivedEnd(try PresencePipe().writing))
                    }
                }
                waitUntilDescriptorsAreClosed()
            }
        }
    }

    @Test("ends of different pipes are not one, also where the kernel gave both the same number")
    func sameNumber() async throws {
        try await onBench(over: .socket) { bench in
            let remote = Self.farPort(bench)
            let (first, other) = (try PresencePipe(), try PresencePipe())
            let pipe = try #require(PresencePipe.identity(ofWriteEnd: first.writing))
            let right = SendRight(remote, with: ReceivedEnd(first.writing, of: pipe))
            let second = SendRight(remote, with: ReceivedEnd(other.writing, of: pipe))
            #expect(try second.export() === other.writing && right.export() === first.writing)
            let third = SendRight(remote, with: ReceivedEnd(try Self.received(first.writing)))
            #expect(try third.export() === first.writing)
        }
    }

    @Test("a FIFO in a file system is no end of a pipe, nor is a socket or a device")
    func others() async throws {
        try await onBench(over: .socket) { bench in
            try withScratchDirectory(leaving: .anything) { scratch in
                let path = scratch.path("fifo")
                #expect(mkfifo(path, 0o600) == 0)
                let fifo = SharedDescriptor(owning: open(path, O_RDWR | O_CLOEXEC))
                let device = SharedDescriptor(owning: open("/dev/null", O_RDWR | O_CLOEXEC))
                let socket = SharedDescriptor(try sysPacketSocket())
                let file = SharedDescriptor(owning: open(scratch.path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0o600))
                for other in [fifo, device, socket, file] {
                    #expect(PresencePipe.identity(ofWriteEnd: other) == nil && PresencePipe.isReadEnd(other) == false)
                }
            }
        }
    }

    @Test("a file whose close waits does not delay the end of a pipe")
    func behindFile() async throws {
        try await onBench(over: .socket) { bench in
            let lingering = try LingeringSocket()
            do { _ = SharedDescriptor(received: FileDescriptor(owning: try lingering.takeNumber())) }
            let pipe = try PresencePipe()
            let reading = pipe.reading
            do {
                let end = try Self.received((consume pipe).writing)
                #expect(PresencePipe.identity(ofWriteEnd: end)?.isCertain == true)
            }
            let events = try sysPoll(reading.rawValue, [], until: Watchdog.deadline)
            #expect(events.contains(.hangUp))
            #expect(!AsyncCloser.isIdle, "the close did not wait")
            try lingering.letGo()
        }
    }

    @Test("the pipes of a process have a limit of their own, and it is read again when one has hung up")
    func limit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            try port.notifyWhenNoSenders(on: .current) {}
            _ = try port.localPort.address(in: bench.directory)
            let sockets = try #require(port.localPort.sockets)
            sockets.quotas.withLock { $0.limits.queuedDescriptors = 3 }
            func readEndCount() throws -> Int {
                _ = try port.tryReceive()
                return sockets.state.withLock { $0.readEnds.count }
            }
            var pipes: [PresencePipe] = []
            var peers: [RawPeer] = []
            for number in 1...5 {
                let (pipe, peer) = (try PresencePipe(), try RawPeer(to: port, on: bench))
                try peer.send(.presence, [], [pipe.reading])
                pipes.append(pipe)
                peers.append(peer)
                #expect(try readEndCount() == min(number, 3))
            }
            let owner = PeerID.process(sysProcessID())
            #expect(sockets.quotas.isOver(owner))
            let before = sockets.state.withLock { Set($0.readEnds.keys) }
            pipes.removeFirst(2)
            waitUntilDescriptorsAreClosed()
            func newEnds() throws -> Set<UInt64> {
                _ = try port.tryReceive()
                return sockets.state.withLock { Set($0.readEnds.keys) }.subtracting(before)
            }
            while try newEnds().count < 2 { yieldThread() }
            #expect(try readEndCount() == 3)
            pipes = []
            while try readEndCount() > 0 { yieldThread() }
            waitUntilDescriptorsAreClosed()  // until then they are in the account
            #expect(!sockets.quotas.isOver(owner))
            #expect(sockets.quotas.withLock { $0.allowance(of: owner).descriptors } == 3)
        }
    }

    @Test("a pipe that a client announced before the port was asked for the notice counts")
    func announcedBefore() async throws {
        try await onBench(over: .process) { bench in
            try bench.besideAnotherProcess { third in
                let port = try bench.farPort(isServed: true)
                let last = try third.farPort()
                do {
                    let own = SendRight(try bench.connect(to: port.address()))
                    try own.send(MachMessage())
                    try last.makeSendRight().send(MachMessage(components: [.right(own)]))
                }
                for _ in 0..<3 { try port.settle() }
                try port.notifyWhenNoSenders()
                for _ in 0..<3 { try port.settle() }
                #expect(try port.lines().isEmpty)
                _ = try last.next()
                #expect(try port.lines(1) == ["no senders"])
            }
        }
    }

    private struct Finder: PortFinder {
        let right: SendRight
        var name: String { "name" }
        func find() -> SendRight? { right }
        func search(
            after date: MonotonicInstant, isForSender: Bool,
            _ didFind: @escaping @Sendable (Result<SendRight, PortError>) -> Void
        ) -> Cancellation { {} }
    }

    @Test("a right to a name travels with the end that its owner's port counts")
    func named() async throws {
        try await onBench(over: .socket) { bench in
            let (port, other) = (try bench.port(), try bench.port())
            try port.notifyWhenNoSenders(on: .current) {}
            let there = try bench.right(to: other)
            let rights = [port.makeSendRight(), try bench.right(to: port)]
            for right in rights {
                let named = SendRight(ReconnectingPort(Finder(right: right)))
                let message = MachMessage(components: [.right(named)])
                #expect(try message.announceRights() == nil)
                let outgoing = try OutgoingMessage(message)
                #expect(try outgoing.descriptors.map(\.rawValue) == [right.export()?.rawValue])
                try there.send(message)
                #expect(try other.next().rights.count == 1)
            }
            let sockets = try #require(port.localPort.sockets)
            while sockets.state.withLock({ $0.readEnds.count }) < 2 { #expect(try port.tryReceive()?.id == nil) }
            withExtendedLifetime(rights) {}
        }
    }
}

extension OutgoingMessage {
    /// The records.
    fileprivate var payload: [UInt8] {
        var first: [UInt8] = []
        if let firstWord { first.append(littleEndian: UInt64(littleEndian: firstWord)) }
        return first + records + tail
    }
}

#if PORT_FAULTS

extension PresenceEndTests {
    @Test(
        "where the kernel does not say what a descriptor is, or whether two are one, each right retains its own end",
        arguments: [[SystemCall.statx], [.kcmp, .fcntl]])
    func unknown(refused: [SystemCall]) async throws {
        try await onBench(over: .socket) { bench in
            let remote = Self.farPort(bench)
            let pipe = try PresencePipe()
            let first = SendRight(remote, with: ReceivedEnd(pipe.writing))
            let other = try Self.received(pipe.writing)
            // The first fcntl asks for its access mode.
            let rules = refused.map { SystemCallFaults.Rule($0, .fail(ENOSYS), skipping: $0 == .fcntl ? 1 : 0) }
            let (second, hits) = SystemCallFaults.with(rules) { SendRight(remote, with: ReceivedEnd(other)) }
            #expect(hits == refused.count)
            #expect(try second.export() === other && first.export() === pipe.writing)
        }
    }

    @Test("where the kernel does not say what a descriptor is, it is not known to be a read end, and not watched")
    func unknownReadEnd() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            let (pipe, peer) = (try PresencePipe(), try RawPeer(to: port, on: bench))
            try peer.send(.presence, [], [pipe.reading])
            let (_, hits) = try SystemCallFaults.with([.init(.statx, .fail(ENOSYS))]) { _ = try port.tryReceive() }
            #expect(hits == 1)
            #expect(port.localPort.connectionCount == 1)
            #expect(try #require(port.localPort.sockets).state.withLock { $0.readEnds.isEmpty })
        }
    }

    @Test("whether a descriptor is the end of a pipe is found out without asking its file system, or locking the pipe")
    func unasked() async throws {
        try await onBench(over: .socket) { bench in
            let pipe = try PresencePipe()
            _ = PresencePipe.identity(ofWriteEnd: pipe.writing)
            let (_, counts) = SystemCallFaults.counting {
                _ = PresencePipe.identity(ofWriteEnd: pipe.writing)
                _ = PresencePipe.isReadEnd(pipe.reading)
            }
            // Of the access mode alone.
            #expect(counts == [.fcntl: 2, .sync_file_range: 2, .statx: 2])
        }
    }
}

#endif
