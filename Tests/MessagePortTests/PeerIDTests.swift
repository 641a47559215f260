// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("PeerID", .leakCheck) struct PeerIDTests {
    private let hidden = PeerIdentity(processID: 0, userID: 0, groupID: 0)

    @Test("a process with a number has the account of that number")
    func numbered() throws {
        let (near, far) = try sysPacketSocketPair()
        #expect(PeerID(.current, on: near.rawValue) == .process(PeerIdentity.current.processID))
        withExtendedLifetime(far) {}
    }

    @Test("processes that this one does not see are distinguished by the kernel, where it can")
    func hiddenProcess() throws {
        let ((near, far), (other, end)) = (try sysPacketSocketPair(), try sysPacketSocketPair())
        let owners = [PeerID(hidden, on: near.rawValue), PeerID(hidden, on: other.rawValue)]
        #expect(!owners.contains(.process(0)))
        // Both are of this process.
        if (try? sysPeerProcessInode(near.rawValue)) ?? nil != nil { #expect(owners[0] == owners[1]) }
        withExtendedLifetime([far, end]) {}
    }

    #if PORT_FAULTS
    @Test("where the kernel cannot, each of their connections has an account of its own, and it is asked once")
    func oldKernel() throws {
        let (near, far) = try sysPacketSocketPair()
        Refusals.forgetting {
            let rule = SystemCallFaults.Rule(.getsockopt, .fail(92), times: .max)  // ENOPROTOOPT
            let (owners, hits) = SystemCallFaults.with([rule]) {
                [PeerID(hidden, on: near.rawValue), PeerID(hidden, on: near.rawValue)]
            }
            #expect(hits == 1 && owners[0] != owners[1])
            #expect(!owners.contains(.process(0)))
        }
        withExtendedLifetime(far) {}
    }
    #endif
}
