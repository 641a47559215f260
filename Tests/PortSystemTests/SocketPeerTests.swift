// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import PortSystem
import TestSupport
import Testing

@Suite("The peer of a socket", .leakCheck) struct SocketPeerTests {
    @Test("a list for which there was no room is read again, with as much room as the kernel asks for")
    func growing() throws {
        var capacities: [CInt] = []
        let list = try readGrowing(from: 2) { (capacity, count) throws(SystemError) in
            capacities.append(capacity)
            // It has grown again between the first two calls.
            count = capacities.count == 1 ? 3 : 5
            if capacity < count { throw SystemError(ERANGE) }
            return [1, 2, 3, 4, 5]
        }
        #expect(list == [1, 2, 3, 4, 5] && capacities == [2, 3, 5])
    }

    @Test("a kernel that asks for no more room is not asked again")
    func notGrowing() {
        var count = 0
        #expect(throws: SystemError(ERANGE)) {
            try readGrowing(from: 2) { (capacity, size) throws(SystemError) -> [Int] in
                count += 1
                size = capacity
                throw SystemError(ERANGE)
            }
        }
        #expect(count == 1)
    }

    @Test("a label has no NUL, and one that no security module has is nil")
    func label() throws {
        let (near, far) = try sysPacketSocketPair()
        let label = try sysPeerLabel(near.rawValue)
        #expect(label?.isEmpty != true && label?.utf8.contains(0) != true)
        withExtendedLifetime(far) {}
    }

    @Test(
        "a process's start is the same by its number and by a descriptor, and unknown without the process",
        .enabled("the system gives no descriptors of processes") { (try? SystemProbe.processSignal()) != nil })
    func start() throws {
        guard let process = try sysProcessDescriptor(of: getpid()) else { return #expect(Bool(false)) }
        let start = try sysProcessStart(openedAs: process.raw)
        #expect(start == sysProcessStart(getpid()) && start != nil)
        #expect(try !sysHasEnded(openedAs: process.raw))
        // No process has this one.
        let (near, far) = try sysPacketSocketPair()
        #expect(try sysProcessStart(openedAs: near.rawValue) == nil)
        withExtendedLifetime(far) {}
    }
}
