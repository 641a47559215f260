// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
@testable import MessagePort
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// A large message is sent in pieces: small ones of other threads are sent between them.
@Suite("small messages beside large ones", .tasks) struct LargeMessageContract {
    /// A right to a listener that nothing reads, its connection, and the accepted end.
    private func unread(_ bench: Bench) throws -> (right: SendRight, connection: SocketConnection, peer: RawPeer) {
        let listener = try RawListener(bench.directory.path + "/raw")
        let remote = try #require(try RightsTable.connect(to: listener.address))
        let connection = try remote.reached()
        connection.useRings(.never)
        connection.sender.credit.setUnlimited()
        return (SendRight(remote), connection, try listener.accept())
    }

    private func sendInTask(
        _ id: Int32, _ bytes: [UInt8], _ right: SendRight
    ) -> (task: Task<Void, Never>, outcome: Recorder<PortError.Code?>) {
        let outcome = Recorder<PortError.Code?>("what a send in a task throws")
        let task = Task {
            do throws(PortError) {
                try await right.send(MachMessage(id: id, bytes: bytes), within: longTimeout)
                outcome.append(nil)
            } catch {
                outcome.append(error.code)
            }
        }
        return (task, outcome)
    }

    @Test(
        "a small message waits for one piece of a large one, not for its end, also of one that has waited for a grant",
        arguments: [false, true], [false, true])
    func waitsForOnePiece(asTask: Bool, afterGrant: Bool) async throws {
        try await onBench(over: .socket) { bench in
            let (right, connection, peer) = try unread(bench)
            let size = 8 << 20
            if afterGrant { #expect(connection.sender.credit.line.tryLock() == true) }
            let large = runOnThread { try right.send(MachMessage(id: 1, bytes: pattern(size))) }
            if afterGrant {
                while connection.sender.credit.line.waitingCount < 1 { yieldThread() }
                connection.sender.credit.line.unlock()
                #expect(try peer.nextSized().header.kind == .credit)
            }
            while !connection.sender.isWithinLargeMessage { yieldThread() }
            connection.sender.largeLine.waitUntilHolderBlocks()
            let task = asTask ? sendInTask(2, [7], right) : nil
            let thread = asTask ? nil : runOnThread { try right.send(MachMessage(id: 2, bytes: [7])) }
            connection.sender.lock.waitUntilHolderBlocks()
            let sentBefore = connection.sender.sentByteCount.load(ordering: .relaxed)
            #expect(sentBefore > 0 && sentBefore < size / 4)
            var (bytes, readBefore) = (0, Int?.none)
            while bytes < size + ComponentKind.headSize {
                let (header, count) = try peer.nextSized()
                if header.kind == .message, header.messageID == 2 {
                    #expect(readBefore == nil && count == ComponentKind.headSize + 1)
                    readBefore = bytes
                } else {
                    #expect(header.kind == (bytes == 0 ? .message : .continuation))
                    bytes += count
                }
            }
            #expect(readBefore == sentBefore)
            #expect(bytes == size + ComponentKind.headSize)
            try large.join()
            try thread?.join()
            if let task { #expect(task.outcome.waitUntilCount(1) == [nil]) }
        }
    }

    @Test("what does not fit between the pieces waits for their end: another large message, one with a descriptor")
    func waitsForEnd() async throws {
        try await onBench(over: .socket) { bench in
            let (right, connection, peer) = try unread(bench)
            let size = 2 << 20
            let first = runOnThread { try right.send(MachMessage(id: 1, bytes: pattern(size))) }
            while !connection.sender.isWithinLargeMessage { yieldThread() }
            connection.sender.largeLine.waitUntilHolderBlocks()
            // More than has been sent of the first.
            let second = runOnThread { try right.send(MachMessage(id: 2, bytes: pattern(size))) }
            while connection.sender.largeLine.waitingCount < 1 { yieldThread() }
            let third = runOnThread {
                try right.send(MachMessage(id: 3, components: [.descriptor(SharedDescriptor(sysPacketSocket()))]))
            }
            while connection.sender.largeLine.waitingCount < 2 { yieldThread() }
            #expect(try !right.trySend(MachMessage(id: 4, bytes: pattern(size))))
            var order: [Int32] = []
            while order.count < 3 {
                let (header, _) = try peer.nextSized()
                if header.kind == .message { order.append(header.messageID) }
            }
            #expect(order == [1, 2, 3])
            for thread in [first, second, third] { try thread.join() }
        }
    }

    @Test(
        "a large message that does not wait is refused while another waits for a full port",
        arguments: TestTransport.connected, [false, true])
    func portIsFull(over transport: TestTransport, asTask: Bool) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 1)
            let right = try bench.right(to: port)
            let count = try right.fill(bytes: 10)
            let size = 1 << 20
            let task = asTask ? sendInTask(100, pattern(size), right) : nil
            let thread = asTask ? nil : runOnThread { try right.send(MachMessage(id: 100, bytes: pattern(size))) }
            let connection = try #require(right.destination as? RemotePort).reached()
            connection.sender.credit.line.waitUntilHolderBlocks()
            #expect(try !right.trySend(MachMessage(id: 101, bytes: pattern(size))))
            for id in 0..<count { #expect(try port.next().id == id) }
            #expect(try port.next().id == 100)
            try thread?.join()
            if let task { #expect(task.outcome.waitUntilCount(1) == [nil]) }
        }
    }

    @Test("the rest of a large message that is given up is never sent, and what waits behind it is")
    func givenUp() async throws {
        try await onBench(over: .socket) { bench in
            let (right, connection, peer) = try unread(bench)
            let large = sendInTask(1, pattern(2 << 20), right)
            while !connection.sender.isWithinLargeMessage { yieldThread() }
            connection.sender.largeLine.waitUntilHolderBlocks()
            let small = runOnThread { try right.send(MachMessage(id: 2, bytes: [7])) }
            connection.sender.lock.waitUntilHolderBlocks()
            let other = runOnThread { try right.send(MachMessage(id: 3, bytes: pattern(1 << 20))) }
            while connection.sender.lock.waitingCount < 1 { yieldThread() }
            large.task.cancel()
            #expect(large.outcome.waitUntilCount(1) == [.cancelled])
            var seen: [PacketKind: Int] = [:]
            var ids: [Int32] = []
            var bytes = 0
            while bytes < 1 << 20 {
                let (header, count) = try peer.nextSized()
                seen[header.kind, default: 0] += 1
                if header.kind == .message { ids.append(header.messageID) }
                if ids.last == 3 { bytes += count }
            }
            #expect(seen[.abort] == 1 && ids == [1, 2, 3])
            try small.join()
            try other.join()
        }
    }

    @Test(
        "large and small messages of several threads come whole, each thread's in its order",
        arguments: TestTransport.withName)
    func mixed(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.farPort(queueLimit: 8)
            let right = try bench.right(to: port)
            let (larges, smalls) = (12, 150)
            let threads =
                (0..<2).map { sender in
                    runOnThread {
                        for number in 0..<larges {
                            let size = 100_000 + 37_000 * number
                            try right.send(MachMessage(id: Int32(number), bytes: [UInt8(sender)] + pattern(size)))
                        }
                    }
                }
                + (2..<5).map { sender in
                    runOnThread {
                        for number in 0..<smalls {
                            let size = number % 10 == 0 ? 3_000 : number % 50
                            try right.send(MachMessage(id: Int32(number), bytes: [UInt8(sender)] + pattern(size)))
                        }
                    }
                }
            var next = [Int32](repeating: 0, count: 5)
            for _ in 0..<2 * larges + 3 * smalls {
                let message = try port.next()
                let sender = Int(message.bytes[0])
                #expect(message.id == next[sender])
                next[sender] += 1
                let number = Int(message.id)
                let size = sender < 2 ? 100_000 + 37_000 * number : number % 10 == 0 ? 3_000 : number % 50
                #expect(message.bytes.dropFirst() == pattern(size)[...])
            }
            for thread in threads { try thread.join() }
            #expect(next == [12, 12, 150, 150, 150])
        }
    }

    @Test("a request between the pieces of a large message is answered before that is whole")
    func request() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let half = [UInt8](repeating: 1, count: 30_000)
            try peer.send(PacketHeader(kind: .message, messageID: 1, componentCount: 1, totalLength: 60_000), half)
            try peer.send(MachMessage(id: 2), asks: 5)
            try port.next().reply(MachMessage(id: 9))
            let answer = try peer.next()
            #expect(answer?.kind == .message && answer?.answers == 5)
            try peer.send(PacketHeader(kind: .abort))
            try peer.send(MachMessage(id: 3))
            #expect(try port.next().id == 3)
        }
    }

    @Test(
        "a client that sends more between two pieces than the pieces have is refused",
        arguments: ["many", "large", "reply", "descriptor", "pieces"])
    func refused(what: String) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let peer = try RawPeer(to: port, on: bench)
            let half = [UInt8](repeating: 1, count: 1_000)
            try peer.send(PacketHeader(kind: .message, messageID: 1, componentCount: 1, totalLength: 2_000), half)
            switch what {
            case "many": for id in Int32(2)..<6 { try peer.send(MachMessage(id: id)) }
            case "large": try peer.send(MachMessage(id: 2, bytes: [UInt8](repeating: 1, count: 900)))
            case "reply": try peer.send(MachMessage(id: 2), answers: peer.givenUpTokenOf(port))
            case "descriptor":
                try peer.send(MachMessage(id: 2, components: [.descriptor(SharedDescriptor(sysPacketSocket()))]))
            default: try peer.send(PacketHeader(kind: .message, messageID: 2, componentCount: 1, totalLength: 20), [1])
            }
            port.localPort.receiveFromSockets()
            var last: PacketKind?
            while let header = try peer.next() { last = header.kind }
            #expect(last == .refused)
            #expect(port.queueCount == (what == "many" ? 1 : 0))
        }
    }
}

extension RawPeer {
    /// The next packet's head, and how many bytes follow it.
    fileprivate func nextSized() throws -> (header: PacketHeader, count: Int) {
        while true {
            let seen = try sysPoll(socket.rawValue, .readable, until: Watchdog.deadline)
            if seen.isEmpty { throw NothingCame() }
            let (_, bytes) = try sysReceivePacket(socket.rawValue, limit: PacketHeader.packetLimit)
            guard let header = PacketHeader(bytes) else { throw NothingCame() }
            return (header, bytes.count - PacketHeader.size)
        }
    }

    /// A token under which the port has asked over this connection, its only one.
    fileprivate func givenUpTokenOf(_ port: MachPort) throws -> UInt64 {
        port.localPort.receiveFromSockets()
        let sockets = try #require(port.localPort.sockets)
        let connection = try #require(sockets.state.withLock { $0.members.values.first })
        return try connection.givenUpToken()
    }
}
