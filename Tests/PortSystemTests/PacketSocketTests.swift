// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

/// Two connected sockets; either end can be closed.
private final class Pair {
    var near: SharedDescriptor?
    var far: SharedDescriptor?

    init() throws {
        (near, far) = try sysPacketSocketPair()
    }

    func send(_ head: [UInt8], _ body: [UInt8] = [], descriptors: [CInt] = []) throws -> SendOutcome {
        try PortSystemTests.send(#require(near), head, body, descriptors)
    }

    func receive(capacity: Int = 1024) throws -> Received {
        try PortSystemTests.receive(#require(far), capacity: capacity)
    }
}

@Suite("PacketSocket", .leakCheck) struct PacketSocketTests {
    @Test("a listener that receives plainly gives connections to whose packets the kernel adds no descriptor")
    func plainly() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let listener = SharedDescriptor(try sysPacketSocket())
            try sysBind(listener.rawValue, path: scratch.path("socket"))
            try sysListen(listener.rawValue, backlog: 8)
            for option: CInt in [SO_PASSCRED, SO_PASSSEC, 76] {
                var on: CInt = 1
                setsockopt(listener.rawValue, SOL_SOCKET, option, &on, socklen_t(MemoryLayout<CInt>.size))
            }
            try sysReceivePlainly(listener.rawValue)
            let client = SharedDescriptor(try sysPacketSocket())
            #expect(try sysConnect(client.rawValue, path: scratch.path("socket")))
            guard let accepted = try sysAccept(listener.rawValue) else {
                Issue.record("no client connected")
                return
            }
            let number = accepted.raw
            let bytes = try expectNoNewDescriptors {
                _ = try sysSendPacket(client.rawValue, head: [1], body: [], descriptors: [])
                return try sysReceivePacket(number, limit: 9).1
            }
            let isOpen = accepted.raw == number  // for as long as packets are received from it
            #expect(bytes == [1] && isOpen)
        }
    }

    @Test("both ends of a pair are close-on-exec and non-blocking")
    func flags() throws {
        let pair = try Pair()
        for end in [pair.near, pair.far] {
            let number = try #require(end).rawValue
            #expect(isCloseOnExec(number))
            #expect(isNonBlocking(number))
        }
    }

    @Test("packets keep their boundaries and their order, and the two parts arrive as one")
    func boundaries() throws {
        let pair = try Pair()
        #expect(try pair.receive() == .wouldBlock)
        #expect(try pair.send([1], [2, 3]) == .sent)
        #expect(try pair.send([], [4]) == .sent)
        #expect(try pair.send([5, 6]) == .sent)
        #expect(try pair.receive() == .packet([1, 2, 3], descriptorCount: 0))
        #expect(try pair.receive() == .packet([4], descriptorCount: 0))
        #expect(try pair.receive() == .packet([5, 6], descriptorCount: 0))
        #expect(try pair.receive() == .wouldBlock)
    }

    @Test("a packet as large as the buffer is whole; one byte more is truncated, and the next is untouched")
    func truncation() throws {
        let pair = try Pair()
        for count in [8, 9, 8] { #expect(try pair.send(Array(repeating: 7, count: count)) == .sent) }
        #expect(try pair.receive(capacity: 8) == .packet(Array(repeating: 7, count: 8), descriptorCount: 0))
        #expect(try pair.receive(capacity: 8) == .truncated)
        #expect(try pair.receive(capacity: 8) == .packet(Array(repeating: 7, count: 8), descriptorCount: 0))
    }

    @Test("a truncated packet's descriptors are closed")
    func truncationWithDescriptors() throws {
        let pair = try Pair()
        let null = try sysOpen("/dev/null", .reading)
        #expect(try pair.send([1, 2], descriptors: [null.raw, null.raw]) == .sent)
        #expect(try expectNoNewDescriptors { try pair.receive(capacity: 1) } == .truncated)
    }

    @Test("a packet carries up to 253 descriptors", arguments: [0, 1, 252, 253])
    func descriptors(count: Int) throws {
        #expect(packetDescriptorLimit == 253)
        let pair = try Pair()
        let null = try sysOpen("/dev/null", .reading)
        #expect(try pair.send([1], descriptors: Array(repeating: null.raw, count: count)) == .sent)
        #expect(try expectNoNewDescriptors { try pair.receive() } == .packet([1], descriptorCount: count))
    }

    @Test("254 descriptors are refused, and nothing is sent")
    func tooManyDescriptors() throws {
        let pair = try Pair()
        let null = try sysOpen("/dev/null", .reading)
        #expect(throws: SystemError(EINVAL)) {
            try pair.send([1], descriptors: Array(repeating: null.raw, count: 254))
        }
        #expect(try pair.receive() == .wouldBlock)
    }

    @Test("a received descriptor is close-on-exec and open on the same file, though the sender closed its own")
    func receivedDescriptor() throws {
        let pair = try Pair()
        let status: FileStatus
        do {
            let sent = try sysOpen("/dev/null", .reading)
            status = try sysStatus(sent.raw)
            #expect(try pair.send([1], descriptors: [sent.raw]) == .sent)
            _ = consume sent
        }
        var byte: [UInt8] = [0]
        let outcome = try byte.withUnsafeMutableBytes {
            try sysReceivePacket(#require(pair.far).rawValue, into: $0)
        }
        guard case .packet(1, let descriptors) = outcome else {
            Issue.record("got \(outcome)")
            return
        }
        let received = try #require(descriptors.first)
        #expect(isCloseOnExec(received.rawValue))
        #expect(try sysStatus(received.rawValue).isSameFile(as: status))
    }

    @Test("descriptors of unread packets are closed with the socket")
    func unreadDescriptors() throws {
        try expectNoNewDescriptors {
            let pair = try Pair()
            let other = try Pair()
            #expect(try pair.send([1], descriptors: [#require(other.near).rawValue]) == .sent)
            other.near = nil
            #expect(try receive(#require(other.far)) == .wouldBlock)
            pair.far = nil
            #expect(try receive(#require(other.far)) == .peerClosed)
        }
    }

    @Test("a closed number cannot be sent")
    func closedNumber() throws {
        let pair = try Pair()
        #expect(throws: SystemError(EBADF)) { try pair.send([1], descriptors: [-1]) }
    }

    @Test("packets that a peer sent before it went are read first, and then its end")
    func dataBeforeEnd() throws {
        let pair = try Pair()
        #expect(try pair.send([1]) == .sent)
        #expect(try pair.send([2]) == .sent)
        pair.near = nil
        #expect(try pair.receive() == .packet([1], descriptorCount: 0))
        #expect(try pair.receive() == .packet([2], descriptorCount: 0))
        #expect(try pair.receive() == .peerClosed)
        #expect(try pair.receive() == .peerClosed)
    }

    @Test("the packets of a peer that goes with packets unread are read, although its end resets the connection")
    func reset() throws {
        let pair = try Pair()
        #expect(try send(#require(pair.far), [9]) == .sent)
        #expect(try pair.send([1]) == .sent)
        pair.near = nil
        #expect(try pair.receive() == .packet([1], descriptorCount: 0))
        #expect(try pair.receive() == .peerClosed)
    }

    #if PORT_FAULTS
    @Test("a kernel that reports a reset each time ends the connection, for a read and for a peek")
    func resets() throws {
        let pair = try Pair()
        let rule = SystemCallFaults.Rule(.recvmsg, .fail(ECONNRESET), times: .max)
        let calls = try SystemCallFaults.counting(with: [rule]) {
            #expect(try pair.receive() == .peerClosed)
            let far = try #require(pair.far)
            let isClosed = if case .peerClosed = try sysPeekPacket(far.rawValue) { true } else { false }
            #expect(isClosed)
        }.calls
        #expect(calls[.recvmsg] == 4)
    }
    #endif

    @Test("sending to a peer that is gone reports that and raises no signal")
    func sendToClosed() throws {
        let pair = try Pair()
        pair.far = nil
        #expect(try pair.send([1]) == .peerClosed)
        #expect(try pair.send([1]) == .peerClosed)
    }

    @Test("a socket that was never connected has no peer")
    func notConnected() throws {
        let socket = SharedDescriptor(try sysPacketSocket())
        #expect(try send(socket, [1]) == .peerClosed)
        #expect(try receive(socket) == .peerClosed)
    }

    @Test("a connection that was shut down ends for the peer, though its descriptor is open elsewhere")
    func shutDown() throws {
        let pair = try Pair()
        let near = try #require(pair.near)
        let copy = try near.duplicate()
        defer { sysClose(copy) }
        #expect(try pair.send([1]) == .sent)
        sysShutDown(near.rawValue)
        #expect(try pair.receive() == .packet([1], descriptorCount: 0))
        #expect(try pair.receive() == .peerClosed)
        #expect(try send(#require(pair.far), [2]) == .peerClosed)
        sysShutDown(near.rawValue)
    }

    @Test("a socket that is shut down for receiving can still send")
    func shutDownReceiving() throws {
        let pair = try Pair()
        sysShutDown(try #require(pair.near).rawValue, receivingOnly: true)
        #expect(try send(#require(pair.far), [2]) == .peerClosed)
        #expect(try pair.send([1]) == .sent)
        #expect(try pair.receive() == .packet([1], descriptorCount: 0))
    }

    @Test("a socket that was never connected can be shut down")
    func shutDownUnconnected() throws {
        let socket = try sysPacketSocket()
        sysShutDown(socket.raw)
    }

    @Test("a packet sent as two arrays comes with its bytes and its descriptors")
    func arrays() throws {
        let (near, far) = try sysPacketSocketPair()
        let null = SharedDescriptor(try sysOpen("/dev/null", .reading))
        let body: [UInt8] = [0, 2, 3, 0]
        #expect(try sysSendPacket(near.rawValue, head: [1], body: body[1...2], descriptors: [null]) == .sent)
        let (outcome, bytes) = try sysReceivePacket(far.rawValue, limit: 3)
        guard case .packet(3, let descriptors) = outcome else {
            Issue.record("got \(outcome)")
            return
        }
        #expect(bytes == [1, 2, 3])
        #expect(descriptors.count == 1)
    }

    @Test("a full queue would block, and accepts packets again when one was read")
    func fullQueue() throws {
        let pair = try Pair()
        var sent = 0
        while try pair.send([1]) == .sent { sent += 1 }
        #expect(sent > 0)
        #expect(try pair.send([1]) == .wouldBlock)
        for _ in 0..<sent { #expect(try pair.receive() == .packet([1], descriptorCount: 0)) }
        #expect(try pair.receive() == .wouldBlock)
        #expect(try pair.send([2]) == .sent)
    }

    @Test("a packet larger than the socket's buffer is refused")
    func tooLarge() throws {
        let pair = try Pair()
        #expect(throws: SystemError(EMSGSIZE)) { try pair.send([], Array(repeating: 0, count: 1 << 24)) }
        #expect(try pair.receive() == .wouldBlock)
    }

    #if PORT_FAULTS
    @Test("a packet that arrives in a shorter buffer is truncated")
    func shortened() throws {
        let pair = try Pair()
        #expect(try pair.send([1, 2, 3]) == .sent)
        let (outcome, hits) = try SystemCallFaults.with([.init(.recvmsg, .shorten(to: 2))]) { try pair.receive() }
        #expect(outcome == .truncated)
        #expect(hits == 1)
        #expect(try pair.receive() == .wouldBlock)
    }

    @Test("every error that says that the peer is gone is that outcome", arguments: [EPIPE, ECONNRESET, ENOTCONN])
    func goneErrors(code: CInt) throws {
        let pair = try Pair()
        let (outcome, _) = try SystemCallFaults.with([.init(.sendmsg, .fail(code))]) { try pair.send([1]) }
        #expect(outcome == .peerClosed)
    }
    #endif

    @Test("a receiver out of descriptors learns that they are lost, and keeps none", arguments: [0, 1])
    func outOfDescriptors(bytes: Int) async {
        await #expect(processExitsWith: .success) { [bytes] in
            await Pools.start()
            let pair = try Pair()
            let null = try sysOpen("/dev/null", .reading)
            for room in 0..<10 {
                let before = openDescriptors()
                let head = [UInt8](repeating: 1, count: bytes)
                let numbers = [CInt](repeating: null.raw, count: 10)
                #expect(try pair.send(head, descriptors: numbers) == .sent)
                let outcome = try withDescriptorRoom(room) { try pair.receive() }
                #expect(outcome == .descriptorsLost)
                #expect(openDescriptors() == before)
            }
        }
    }
}
