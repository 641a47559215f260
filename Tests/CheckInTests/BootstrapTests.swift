// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("The bootstrap descriptor", .workers) struct BootstrapTests {
    @Test(
        "a variable of another form is refused",
        arguments: ["3", "", ":", "3:", ":5", "x:5", "3:y", "0:5", "-1:5", "3:5:7", "99999999999:5", " 3:5"])
    func form(value: String) {
        #expect(failure { _ = try Bootstrap.adopt(value) }?.code == .bootstrapInvalid)
    }

    @Test("a descriptor that is not open is that of the process that started this one")
    func closed() throws {
        #expect(try Bootstrap.adopt("1000000:5") == nil)
    }

    @Test("another socket, a socket of another kind, and what is none, are not adopted, and stay as they are")
    func otherSocket() throws {
        let (one, other) = try sysPacketSocketPair()
        let inode = try sysStatus(other.rawValue).inode
        #expect(try Bootstrap.adopt("\(one.rawValue):\(inode)") == nil)
        var ends: [CInt] = [-1, -1]
        try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let streams = ends.map { SharedDescriptor(owning: $0) }
        let stream = streams[0].rawValue
        #expect(try Bootstrap.adopt("\(stream):\(sysStatus(stream).inode)") == nil)
        let null = SharedDescriptor(owning: open("/dev/null", O_RDONLY))
        let inodeOfNull = try sysStatus(null.rawValue).inode
        #expect(try Bootstrap.adopt("\(null.rawValue):\(inodeOfNull)") == nil)
        for descriptor in streams + [null] { #expect(fcntl(descriptor.rawValue, F_GETFD) == 0) }
        for descriptor in [one, other] { #expect(fcntl(descriptor.rawValue, F_GETFD) != -1) }
    }

    @Test("the right socket is adopted, and is close-on-exec from then on")
    func taken() throws {
        let (ours, theirs) = try sysPacketSocketPair()
        let inherited = dup(theirs.rawValue)
        try #require(inherited > 2)
        #expect(fcntl(inherited, F_GETFD) & FD_CLOEXEC == 0)
        let right = try #require(try Bootstrap.adopt("\(inherited):\(sysStatus(inherited).inode)"))
        #expect(fcntl(inherited, F_GETFD) & FD_CLOEXEC != 0)
        try right.send(MachMessage(id: 100), within: longTimeout)
        var (_, bytes) = try sysReceivePacket(ours.rawValue, limit: 100)
        // With PORT_RING=always rings are offered first.
        if PacketHeader(bytes)?.kind == .ring { (_, bytes) = try sysReceivePacket(ours.rawValue, limit: 100) }
        #expect(PacketHeader(bytes)?.messageID == 100)
    }
}
