// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
import TestSupport
import Testing

@Suite("the process behind a message, a reply and a right", .contract, .openableProcesses) struct PeerProcessContract {
    @Test(
        "a message's sender, a reply's sender and a right's owner open to their process",
        arguments: TestTransport.allCases)
    func opened(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            try sender.send(MachMessage(id: 1))
            let far = try expectOpens(try port.next().sender, isOther: transport == .process)
            try bench.serving(.echo) { right, _ in
                // Connected before anything was sent.
                let owner = try right.owner()
                #expect(try expectOpens(owner, isOther: transport == .process).startTime == far.startTime)
                let reply = try right.ask(MachMessage(id: 2))
                #expect(reply.sender == owner && far.identity == owner)
                try expectOpens(reply.sender, isOther: transport == .process)
                #expect(try right.owner() == owner)
            }
        }
    }

    @Test("a right that came in a message connects to learn its port's owner", arguments: TestTransport.connected)
    func received(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            try bench.serving(.echo) { right, served in
                let sender = try bench.farSender(to: port)
                try sender.send(MachMessage(components: [.right(served.makeSendRight())]))
                let received = try #require(try port.next().rights.first)
                #expect(try received.owner() == right.owner())
            }
        }
    }

    @Test("the owner of a port that was gone before its right was used is not known")
    func deadName() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let unused = SendRight(RemotePort(try port.localPort.address(in: bench.directory)))
            let used = try bench.right(to: port)
            #expect(try used.owner() == .current)
            port.invalidate()
            #expect(portError { () throws(PortError) in _ = try unused.owner() }?.code == .deadName)
            #expect(
                portError { () throws(PortError) in _ = try SendRight(DeadPort(.nowhere)).owner() }?.code == .deadName)
            #expect(used.isDead)
            #expect(try used.owner() == .current)
        }
    }

    @Test(
        "once its connection has ended, a process is opened no more, and one that was opened before is as it was",
        arguments: TestTransport.connected)
    func connectionEnded(over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let sender = try bench.farSender(to: port)
            try sender.send(MachMessage(id: 1))
            let message = try port.next()
            let process = try message.sender.openProcess()
            port.invalidate()
            let error = portError { () throws(PortError) in _ = try message.sender.openProcess() }
            #expect(error?.code == .connectionEnded && error?.delivery == .notSent)
            #expect(!process.hasEnded())
            #expect(process.identity == message.sender)
        }
    }

    @Test("the connection's identity opens its process as long as a right or a request needs the connection")
    func released() async throws {
        try await onBench(over: .socket) { bench in
            try bench.serving(.echo) { right, _ in
                let reply = try right.ask(MachMessage(id: 1))
                #expect(try !reply.sender.openProcess().hasEnded())
            }
            let port = try bench.farPort(.echo, isServed: true)
            let reply = try bench.right(to: port).ask(MachMessage(id: 1))
            // The right was released with the last use of it.
            #expect(portError { () throws(PortError) in _ = try reply.sender.openProcess() }?.code == .connectionEnded)
        }
    }

    @Test("a process that was killed can be waited for, and is opened no more")
    func killed() async throws {
        try await onBench(over: .process, endsAs: .signalled(SIGKILL)) { bench in
            let right = try bench.right(to: bench.farPort())
            let owner = try right.owner()
            let process = try owner.openProcess()
            try bench.killFarSide()
            #expect(try !sysPoll(process.descriptor.rawValue, .readable, until: Watchdog.deadline).isEmpty)
            #expect(process.hasEnded())
            try process.signal(SIGTERM)
            // The end of the connection was not read, so it is the kernel that says that the process has ended.
            let error = portError { () throws(PortError) in _ = try owner.openProcess() }
            #expect(error?.systemError == SystemError(ESRCH))
            #expect(error.map { "\($0)" }?.contains("the process has ended") == true)
            #expect(try right.owner() == owner)
        }
    }

    @Test("a process that has ended is not opened, whether it was reaped or not")
    func zombie() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let path = try port.localPort.address(in: bench.directory).path + ".raw"
            let listener = try sysPacketSocket()
            try sysBind(listener.raw, path: path)
            try sysListen(listener.raw, backlog: 1)
            let output = try TestPipe()
            let child = try sysSpawn(
                try builtProduct("port-test-peer"), arguments: ["connect-raw", path], environment: [:], in: nil,
                descriptors: [nil, output.writing.rawValue, nil])
            #expect(try sysPoll(listener.raw, .readable, until: Watchdog.deadline) == .readable)
            guard let accepted = try sysAccept(listener.raw) else { return #expect(Bool(false)) }
            let socket = SharedDescriptor(accepted)
            let identity = try PeerIdentity(ofPeerOf: socket.rawValue)
            let process = try PeerProcess(identity, at: socket)
            #expect(identity.processID == child && !process.hasEnded())
            #expect(process.startTime == sysProcessStart(child))
            // It is identified by the socket, whose other end its process need not have any more.
            try process.signal(0)
            try process.signal(SIGKILL)
            #expect(try !sysPoll(process.descriptor.rawValue, .readable, until: Watchdog.deadline).isEmpty)
            for isReaped in [false, true] {
                if isReaped { sysKillAndReap(child) }
                #expect(process.hasEnded())
                try process.signal(SIGTERM)
                let error = portError { () throws(PortError) in _ = try PeerProcess(identity, at: socket) }
                #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(ESRCH))
                #expect(error.map { "\($0)" }?.contains("the process has ended") == true)
            }
            unlink(path)
        }
    }

    @Test("a signal that does not exist is an error, and says so")
    func noSignal() throws {
        let error = portError { () throws(PortError) in try PeerIdentity.current.openProcess().signal(1_000) }
        #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(EINVAL))
    }
}

/// Opens a process, and expects it to be the one of the identity.
@discardableResult
private func expectOpens(_ identity: PeerIdentity, isOther: Bool) throws -> PeerProcess {
    let process = try identity.openProcess()
    #expect((identity.processID != sysProcessID()) == isOther)
    #expect(process.identity == identity && !process.hasEnded())
    #expect(process.startTime == sysProcessStart(identity.processID))
    // The far side has the groups of the process that started it.
    #expect(try process.supplementaryGroups == PeerIdentity.current.openProcess().supplementaryGroups)
    try process.signal(0)
    return process
}

extension Trait where Self == ConditionTrait {
    /// For tests that open processes.
    fileprivate static var openableProcesses: Self {
        .enabled("the system refuses descriptors of processes") {
            let (end, other) = try sysPacketSocketPair()
            defer { withExtendedLifetime(other) {} }
            return (try? PeerProcess(.current, at: end)) != nil && (try? PeerIdentity.current.openProcess()) != nil
        }
    }
}

#if PORT_FAULTS
@Suite("a process that the system does not open, or not wholly", .contract, .openableProcesses)
struct PeerProcessFaultTests {
    /// What is opened at the other end of a pair of sockets, which is this process, where calls fail.
    private func opening(
        _ rules: SystemCallFaults.Rule..., isOwn: Bool = false
    ) throws -> (result: Result<PeerProcess, PortError>, hits: Int) {
        let (near, far) = try sysPacketSocketPair()
        defer { withExtendedLifetime(far) {} }
        return Refusals.forgetting {
            SystemCallFaults.with(rules) {
                Result { () throws(PortError) in
                    try isOwn ? PeerIdentity.current.openProcess() : PeerProcess(.current, at: near)
                }
            }
        }
    }

    private func error(of result: Result<PeerProcess, PortError>) -> PortError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test(
        "where the kernel does not say which process it is, that is an error with the kernel's reason",
        arguments: [ENOPROTOOPT, EPERM, EINVAL, EOPNOTSUPP])
    func refused(code: CInt) throws {
        let error = error(of: try opening(.init(.getsockopt, .fail(code), times: .max)).result)
        #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(code))
        #expect(error.map { "\($0)" }?.contains("this system gives no descriptor of a peer's process") == true)
    }

    @Test(
        "an older kernel's error for a process that was reaped says that it has ended",
        arguments: [EINVAL, ENODATA, ESRCH])
    func reaped(code: CInt) throws {
        let error = error(of: try opening(.init(.getsockopt, .fail(code))).result)
        #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(ESRCH))
        #expect(error.map { "\($0)" }?.contains("the process has ended") == true)
        #expect(Refusals.peerProcess.error == nil)
    }

    @Test("without a descriptor left, or memory, the error is that")
    func shortages() throws {
        for call in [SystemCall.getsockopt, .open] {
            #expect(error(of: try opening(.init(call, .fail(EMFILE))).result)?.code == .descriptorLimit)
        }
        for call in [SystemCall.pidfd_open, .socketpair] {
            #expect(error(of: try opening(.init(call, .fail(EMFILE)), isOwn: true).result)?.code == .descriptorLimit)
        }
        for rule in [
            SystemCallFaults.Rule(.getsockopt, .fail(ENOMEM), skipping: 1),
            .init(.getsockopt, .fail(ENOMEM), skipping: 2),
            .init(.open, .fail(ENOMEM), skipping: 1), .init(.poll, .fail(ENOMEM)),
        ] {
            let error = error(of: try opening(rule).result)
            #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(ENOMEM))
        }
    }

    @Test("what the system does not report of a process is unknown, and the rest is known")
    func unknown() throws {
        let known = try opening().result.get()
        let groups = try opening(.init(.getsockopt, .fail(ENOPROTOOPT), skipping: 1))
        #expect(try groups.result.get().supplementaryGroups == nil && groups.hits == 1)
        #expect(try groups.result.get().startTime == known.startTime && known.startTime == sysProcessStart(getpid()))
        let label = try opening(.init(.getsockopt, .fail(ENOPROTOOPT), skipping: 2))
        #expect(try label.result.get().securityLabel == nil && label.hits == 1)
        #expect(try label.result.get().supplementaryGroups == known.supplementaryGroups)
        for skipping in 0...1 {
            let start = try opening(.init(.open, .fail(EACCES), skipping: skipping))
            #expect(try start.result.get().startTime == nil && start.hits == 1)
            #expect(try start.result.get().supplementaryGroups == known.supplementaryGroups)
        }
    }

    @Test("on a kernel without descriptors of processes this process has none either", arguments: [ENOSYS, EPERM])
    func ownRefused(code: CInt) throws {
        let error = error(of: try opening(.init(.pidfd_open, .fail(code)), isOwn: true).result)
        #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(code))
        #expect(error.map { "\($0)" }?.contains("this system gives no descriptor of a process") == true)
    }

    @Test("a signal that the system or another user's process refuses is an error", arguments: [ENOSYS, EPERM])
    func signalRefused(code: CInt) throws {
        let process = try PeerIdentity.current.openProcess()
        let (error, _) = SystemCallFaults.with([.init(.pidfd_send_signal, .fail(code))]) {
            portError { () throws(PortError) in try process.signal(0) }
        }
        #expect(error?.code == .systemCallFailed && error?.systemError == SystemError(code))
    }
}
#endif
