// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// What peers may do with the ends of pipes that count rights.
@Suite("hostile ends of pipes", .contract) struct HostilePresenceTests {
    enum Breach: CaseIterable, Sendable {
        case missing, file, readEnd, surplus, sharedWithNone
        case announcedFile, announcedWriteEnd, announcedNothing, announcedBytes, announcedTwice

        func commit(_ peer: RawPeer, _ address: PortAddress) throws {
            let pipe = try PresencePipe()
            let file = SharedDescriptor(try sysOpen("/dev/null", .reading))
            switch self {
            case .missing: try HostilePresenceTests.sendRight([], address, peer)
            case .file: try HostilePresenceTests.sendRight([file], address, peer)
            case .readEnd: try HostilePresenceTests.sendRight([pipe.reading], address, peer)
            case .surplus: try HostilePresenceTests.sendRight([pipe.writing, pipe.writing], address, peer)
            case .sharedWithNone: try HostilePresenceTests.sendRight([], address, peer, kind: .sharedRight)
            case .announcedFile: try peer.send(.presence, [], [file])
            case .announcedWriteEnd: try peer.send(.presence, [], [pipe.writing])
            case .announcedNothing: try peer.send(PacketHeader(kind: .presence))
            case .announcedBytes: try peer.send(.presence, [1], [pipe.reading])
            case .announcedTwice: for _ in 0..<2 { try peer.send(.presence, [], [pipe.reading]) }
            }
        }
    }

    /// Sends a right with ends of pipes.
    private static func sendRight(
        _ ends: [SharedDescriptor], _ address: PortAddress, _ peer: RawPeer, kind: ComponentKind = .countedRight
    ) throws {
        let path = Array(address.path.utf8)
        var payload: [UInt8] = []
        payload.append(littleEndian: kind.head(path.count))
        payload += path
        let header = PacketHeader(
            kind: .message, descriptorCount: UInt16(ends.count), componentCount: 1,
            totalLength: UInt64(payload.count))
        try peer.send(header, payload, ends)
    }

    @Test("ends that stay with rights are in their sender's account until they are closed")
    func retained() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            var rights: [SendRight] = []
            let owner = PeerID.process(sysProcessID())
            for number in 1...3 {
                // The receiver does not know whether there is such a port.
                let address = PortAddress(path: "\(bench.directory.path)/invented\(number)")
                try Self.sendRight([PresencePipe().writing], address, peer)
                rights += try port.next().rights
            }
            let quotas = try #require(port.localPort.sockets).quotas
            quotas.withLock { $0.limits.queuedDescriptors = 4 }
            waitUntilDescriptorsAreClosed()
            #expect(!quotas.isOver(owner))
            quotas.withLock { $0.limits.queuedDescriptors = 3 }
            #expect(quotas.isOver(owner))
            rights.removeLast()
            waitUntilDescriptorsAreClosed()
            #expect(!quotas.isOver(owner))
            rights = []
        }
    }

    @Test("what is no end of a pipe ends the connection, and leaves nothing", arguments: Breach.allCases)
    func refused(breach: Breach) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            try port.notifyWhenNoSenders(on: .current) {}
            let address = try port.localPort.address(in: bench.directory)
            _ = try port.tryReceive()
            try expectNoNewDescriptors {
                let peer = try RawPeer(to: port, on: bench)
                try breach.commit(peer, address)
                #expect(try port.tryReceive()?.id == nil)
                #expect(try peer.next().map { [Int32($0.kind.rawValue), $0.messageID] } == [5, 18])
                while port.localPort.connectionCount > 0 { _ = try port.tryReceive() }
                waitUntilDescriptorsAreClosed()  // a pipe hangs up then
                _ = try port.tryReceive()
                waitUntilDescriptorsAreClosed()
            }
        }
    }

    @Test("a read end may come within a message, also when it was lost; its packet has nothing else")
    func withinMessage() throws {
        var assembly = PacketAssembly()
        let begun = PacketHeader(kind: .message, componentCount: 1, totalLength: 100)
        guard case .incomplete = assembly.accept(begun, payload: [1], descriptors: []) else { throw NothingCame() }
        let end = try PresencePipe().reading
        guard case .presence(.some) = assembly.accept(.presence, payload: [], descriptors: [end]),
            case .presence(nil) = assembly.accept(.presence, payload: [], descriptors: nil)
        else { throw NothingCame() }
        #expect(assembly.isBegun == true)
        var header = PacketHeader.presence
        header.asks = 1
        guard case .violation = assembly.accept(header, payload: [], descriptors: [end]) else { throw NothingCame() }
    }

    @Test("only the right's end may send a read end")
    func fromPort() async throws {
        try await onBench(over: .socket) { bench in
            let (right, thread) = try bench.rawListener { peer in
                try peer.send(.presence, [], [try PresencePipe().reading])
                #expect(try peer.next()?.kind == .refused)
            }
            while !right.isDead { yieldThread() }
            try thread.join()
        }
    }

    @Test("an end that came first does not replace the one of an honest sender")
    func worthless() async throws {
        try await onBench(over: .socket) { bench in
            let remote = RemotePort(PortAddress(path: "\(bench.directory.path)/far"))
            let (worthless, honest) = (try PresencePipe(), try PresencePipe())
            let first = SendRight(remote, with: ReceivedEnd(worthless.writing))
            var second: SendRight? = SendRight(remote, with: ReceivedEnd(honest.writing))
            #expect(try second?.export() === honest.writing && first.export() === worthless.writing)
            let duplicate = SharedDescriptor(owning: try honest.writing.duplicate())
            let third = SendRight(remote, with: ReceivedEnd(duplicate))
            #expect(try third.export() === honest.writing)
            // A read end of the honest pipe, which does not count, has no chance to stand for it.
            #expect(ReceivedEnd(honest.reading) == nil)
            second = nil
            withExtendedLifetime((first, third)) {}
        }
    }

    @Test("peers that announce and go away leave a read end only while they have the other one")
    func announcedAndGone() async throws {
        try await onBench(over: .socket) { bench in
            let (port, worker, notices) = (try bench.port(), Worker(), Counter("notices"))
            try port.notifyWhenNoSenders(on: worker.loop) { notices.increment() }
            var pipes: [PresencePipe] = []
            for _ in 0..<3 {
                let pipe = try PresencePipe()
                let peer = try RawPeer(to: port, on: bench)
                try peer.send(.presence, [], [pipe.reading])
                _ = try port.tryReceive()
                pipes.append(pipe)
            }
            func readEndCount() throws -> Int {
                _ = try port.tryReceive()
                return try #require(port.localPort.sockets).state.withLock { $0.readEnds.count }
            }
            while port.localPort.connectionCount > 0 { _ = try port.tryReceive() }
            #expect(try readEndCount() == 3)
            let quotas = try #require(port.localPort.sockets).quotas
            #expect(
                quotas.withLock { $0.allowance(of: .process(sysProcessID())).descriptors }
                    == PeerLimits.standard.queuedDescriptors)
            pipes.removeLast(2)
            while try readEndCount() > 1 { yieldThread() }
            try worker.perform {}
            #expect(notices.value == 0)
            pipes = []
            while notices.value == 0 { _ = try port.tryReceive() }
            #expect(try readEndCount() == 0)
            try worker.end()
        }
    }
}
