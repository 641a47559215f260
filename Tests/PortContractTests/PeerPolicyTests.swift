// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

@Suite("the policy of a port", .contract) struct PeerPolicyTests {
    @Test("policies go by user, by effective and supplementary group, and one or the other")
    func usersAndGroups() throws {
        let (near, far) = try sysPacketSocketPair()
        func admits(_ policy: PeerPolicy, user: UInt32 = 70001, group: UInt32 = 70002) -> Bool {
            let identity = PeerIdentity(processID: 1, userID: user, groupID: group)
            return policy.admits(ConnectingPeer(identity, on: near))
        }
        #expect(admits(.users([70001])) && !admits(.users([70002])) && !admits(.users([])))
        #expect(admits(.groups([70002, 1])) && !admits(.groups([70001])) && !admits(.groups([])))
        #expect(admits(.users([1]).or(.groups([70002]))) && !admits(.users([1]).or(.groups([1, 2]))))
        #expect(!admits(.users([.max]), user: .max))
        // Those of this process, which is at the other end.
        let own = try ConnectingPeer(.current, on: near).supplementaryGroups()
        var groups = [gid_t](repeating: 0, count: 65536)
        let count = getgroups(CInt(groups.count), &groups)
        #expect(own == Array(groups.prefix(Int(count))))
        for group in own { #expect(admits(.groups([group]))) }
        withExtendedLifetime(far) {}
    }

    #if PORT_FAULTS
    @Test("where the kernel does not report supplementary groups, the effective one alone counts")
    func groupsRefused() throws {
        let (near, far) = try sysPacketSocketPair()
        let peer = PeerIdentity(processID: 1, userID: 70001, groupID: 70002)
        let rule = SystemCallFaults.Rule(.getsockopt, .fail(92), times: 3)  // ENOPROTOOPT
        let (results, hits) = SystemCallFaults.with([rule]) {
            [70002, 70003].map { PeerPolicy.groups([$0]).admits(ConnectingPeer(peer, on: near)) }
                + [(try? ConnectingPeer(peer, on: near).supplementaryGroups()) != nil]
        }
        #expect(results == [true, false, false] && hits == 1)
        withExtendedLifetime(far) {}
    }
    #endif

    @Test("it is asked once for each connection, with the process that the kernel names, before anything is read")
    func asked() async throws {
        try await onBench(over: .socket) { bench in
            let asked = Recorder<PeerIdentity>()
            let port = try bench.port()
            port.setPeerPolicy(
                PeerPolicy { peer in
                    asked.append(peer.identity)
                    return true
                })
            let peers = [try RawPeer(to: port, on: bench), try RawPeer(to: port, on: bench)]
            for id in Int32(0)..<6 { try peers[Int(id) % 2].send(MachMessage(id: id)) }
            for _ in 0..<6 { #expect(try port.next().sender == .current) }
            #expect(asked.elements == [.current, .current])
        }
    }

    @Test(
        "a peer that is not admitted is refused unread, and a right of the process itself is not asked about"
    )
    func refused() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            port.setPeerPolicy(PeerPolicy { _ in false })
            let peer = try RawPeer(to: port, on: bench)
            try peer.send(MachMessage(id: 1))
            let right = try bench.right(to: port)
            try port.makeSendRight().send(MachMessage(id: 2))
            #expect(try port.next().id == 2)
            #expect(try port.tryReceive() == nil)
            let refusal = try peer.next()
            #expect(refusal?.kind == .refused)
            #expect(refusal?.messageID == Int32(PortError.Code.peerRefused.rawValue))
            #expect(try peer.next() == nil)
            #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .peerRefused)
            #expect(port.localPort.connectionCount == 0)
        }
    }

    @Test("the policy that a port begins with admits its own user")
    func sameUser() throws {
        let (near, far) = try sysPacketSocketPair()
        let own = PeerIdentity.current
        let other = PeerIdentity(processID: own.processID, userID: own.userID + 1, groupID: own.groupID)
        let admits = [own, other].map { PeerPolicy.sameUser.admits(ConnectingPeer($0, on: near)) }
        #expect(admits == [true, false])
        withExtendedLifetime(far) {}
    }

    /// What `open` gives the policy of a port, when a client connects.
    private func openedProcess(
        on bench: Bench, by open: @escaping @Sendable (borrowing ConnectingPeer) -> Result<PeerProcess, PortError>
    ) throws -> Result<PeerProcess, PortError> {
        let port = try bench.port()
        let opened = Recorder<Result<PeerProcess, PortError>>()
        port.setPeerPolicy(
            PeerPolicy { peer in
                opened.append(open(peer))
                return true
            })
        let peer = try RawPeer(to: port, on: bench)
        try peer.send(MachMessage(id: 1))
        #expect(try port.next().id == 1)
        return try #require(opened.elements.first)
    }

    @Test("a policy can open the peer's process")
    func process() async throws {
        try await onBench(over: .socket) { bench in
            let opened = try openedProcess(on: bench) { peer in
                Result { () throws(PortError) in try peer.openProcess() }
            }
            switch opened {
            // This process, which has not ended.
            case .success(let process): #expect(!process.hasEnded() && process.identity == .current)
            // Where the system refuses it.
            case .failure(let error):
                #expect("\(error)".contains("this system gives no descriptor of a peer's process"))
            }
        }
    }

    #if PORT_FAULTS
    @Test("where the system gives no descriptor of a peer's process, asking for one says so")
    func withoutProcessDescriptor() async throws {
        try await onBench(over: .socket) { bench in
            let opened = try openedProcess(on: bench) { peer in
                let rule = SystemCallFaults.Rule(.getsockopt, .fail(92))  // ENOPROTOOPT
                return Refusals.forgetting {
                    SystemCallFaults.with([rule]) { Result { () throws(PortError) in try peer.openProcess() } }
                        .result
                }
            }
            guard case .failure(let error) = opened else { return #expect(Bool(false)) }
            #expect(error.code == .systemCallFailed && error.systemError == SystemError(92))
            #expect("\(error)".contains("this system gives no descriptor of a peer's process"))
        }
    }
    #endif
}
