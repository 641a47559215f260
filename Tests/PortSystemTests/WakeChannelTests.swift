// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("wake channels", .leakCheck) struct WakeChannelTests {
    @Test("each wake ends a wait for edges once, however many there were, and leaves nothing to read")
    func edges() throws {
        let (channel, sending) = try WakeChannel.make()
        let sender = try #require(WakeSender(sending))
        let set = try EpollSet()
        try set.add(channel.rawValue, [.readable, .edgeTriggered], key: 7)
        _ = set.wait(until: .distantPast)
        for _ in 0..<1000 {
            #expect(sender.wake())
            #expect(set.wait(until: Watchdog.deadline).map(\.key) == [7])
            #expect(set.wait(until: .distantPast).isEmpty)
        }
        // Whatever its flags are.
        #expect(fcntl(sending.rawValue, F_SETFL, 0) == 0)
        for _ in 0..<100_000 { #expect(sender.wake()) }
        #expect(set.wait(until: Watchdog.deadline).map(\.key) == [7])
        #expect(set.wait(until: .distantPast).isEmpty)
        var count: CInt = -1
        #expect(ioctl(channel.rawValue, UInt(FIONREAD), &count) == 0 && count == 0)
    }

    @Test("neither end can send anything in it, bytes or descriptors")
    func nothingSent() throws {
        let (channel, sending) = try WakeChannel.make()
        let other = try sysPacketSocketPair().0
        for end in [channel.rawValue, sending.rawValue] {
            for descriptors in [[], [other]] {
                let outcome = try sysSendPacket(end, head: [1], body: [], descriptors: descriptors)
                #expect(outcome == .peerClosed)
            }
        }
    }

    #if PORT_FAULTS
    @Test("where a shutdown wakes no consumer, that is noticed", arguments: [EPERM, EACCES])
    func refused(code: CInt) throws {
        let rule = SystemCallFaults.Rule(.shutdown, .fail(code), times: .max, skipping: 1)
        _ = Refusals.forgetting {
            SystemCallFaults.with([rule]) {
                #expect(throws: SystemError(EOPNOTSUPP)) { try WakeChannel.prove() }
            }
        }
    }
    #endif

    @Test("waking a consumer that has gone has no effect")
    func consumerGone() throws {
        var made: (channel: WakeChannel, sending: SharedDescriptor)? = try WakeChannel.make()
        let sender = try #require(made.flatMap { WakeSender($0.sending) })
        made = nil
        #expect(sender.wake())
    }

    @Test("a stream socket that others may use is not accepted: a shutdown would end it")
    func inUse() throws {
        func streamSocket() -> SharedDescriptor {
            SharedDescriptor(owning: socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0))
        }
        let (one, other) = try sysStreamSocketPair()
        #expect(WakeSender(one) == nil && WakeSender(other) == nil)
        #expect(shutdown(one.rawValue, CInt(SHUT_WR)) == 0)
        #expect(WakeSender(one) == nil && WakeSender(other) == nil)
        #expect(WakeSender(streamSocket()) == nil)
        try withScratchDirectory(leaving: .anything) { scratch in
            let listener = streamSocket()
            try sysBind(listener.rawValue, path: scratch.path("socket"))
            try sysListen(listener.rawValue, backlog: 1)
            #expect(WakeSender(listener) == nil)
        }
    }

    @Test("a descriptor that is no stream socket of this machine is not accepted")
    func others() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let directory = SharedDescriptor(try sysOpen(scratch.path, .directory))
            let file = SharedDescriptor(try sysOpen("file", in: directory.rawValue, .creating))
            let wake = try EventDescriptor(.pipe)
            let pipe = SharedDescriptor(try sysDuplicate(wake.raw))
            let memory = try SharedMemory.make(size: 4096).file
            let sockets = try sysPacketSocketPair()
            let network = SharedDescriptor(owning: socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0))
            for other in [directory, file, pipe, memory, sockets.0, network] {
                #expect(WakeSender(other) == nil)
            }
        }
    }
}
