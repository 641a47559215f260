// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("wake channels", .census) struct WakeChannelTests {
    private func unread(_ channel: WakeChannel) -> Int {
        var count: CInt = 0
        #expect(ioctl(channel.rawValue, UInt(FIONREAD), &count) == 0)
        return Int(count)
    }

    @Test("each byte ends a wait for edges once, and none is read")
    func edges() throws {
        let (channel, sending) = try WakeChannel.make()
        let sender = try #require(WakeSender(sending))
        let set = try EpollSet()
        try set.add(channel.rawValue, [.readable, .edgeTriggered], key: 7)
        for count in 1...WakeChannel.drainInterval {
            #expect(sender.wake())
            #expect(set.wait(until: Watchdog.deadline).map(\.key) == [7])
            #expect(set.wait(until: .distantPast).isEmpty)
            #expect(unread(channel) == count)
        }
    }

    @Test(
        "there is room for many more bytes than come between two drains; a full channel keeps nobody waiting, whatever its flags"
    )
    func full() throws {
        let (channel, sending) = try WakeChannel.make()
        let sender = try #require(WakeSender(sending))
        #expect(fcntl(sending.rawValue, F_SETFL, 0) == 0)
        var time = [3600, 0]  // a timeval: seconds and microseconds
        #expect(setsockopt(sending.rawValue, SOL_SOCKET, SO_SNDTIMEO, &time, 16) == 0)
        var count = 0
        while sender.wake() { count += 1 }
        #expect(count >= 2 * WakeChannel.drainInterval)
        #expect(unread(channel) == count)
        channel.drain()
        #expect(unread(channel) == 0 && sender.wake())
    }

    @Test("what is drained at once is limited")
    func drainLimit() throws {
        let (channel, sending) = try WakeChannel.make()
        _ = try sysWrite(sending.rawValue, [UInt8](repeating: 1, count: 40_000))
        channel.drain()
        #expect(unread(channel) == 40_000 - 32 * 512)
    }

    @Test("descriptors that come with bytes are closed")
    func descriptors() throws {
        try expectNoNewDescriptors {
            let (channel, sending) = try WakeChannel.make()
            for _ in 0..<5 {
                let other = try sysPacketSocketPair().0
                _ = try sysSendPacket(sending.rawValue, head: [1], body: [], descriptors: [other])
            }
            channel.drain()
            for _ in 0..<5 {
                let other = try sysPacketSocketPair().0
                _ = try sysSendPacket(sending.rawValue, head: [1], body: [], descriptors: [other])
            }
        }
    }

    @Test("a byte for a reader that has gone is refused, and no signal comes")
    func readerGone() throws {
        var made: (channel: WakeChannel, sending: SharedDescriptor)? = try WakeChannel.make()
        let sender = try #require(made.flatMap { WakeSender($0.sending) })
        made = nil
        #expect(!sender.wake())
    }

    @Test("what is no stream socket of this machine is not taken")
    func others() throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let directory = SharedDescriptor(try sysOpen(scratch.path, .directory))
            let file = SharedDescriptor(try sysOpen("file", in: directory.rawValue, .creating))
            let wake = try WakeDescriptor(.pipe)
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
