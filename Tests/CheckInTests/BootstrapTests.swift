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
        arguments: [
            "3", "", ":", "3:", ":5", "x:5", "3:y", "1:5", "2:5", "-1:5", "3:5:7", "99999999999:5", " 3:5", "3:5:",
            "3:5:/a/../b",
        ])
    func form(value: String) {
        #expect(failure { _ = try Bootstrap.adopt(value) }?.code == .bootstrapInvalid)
    }

    @Test("a descriptor that is not open is that of the process that started this one")
    func closed() throws {
        #expect(try Bootstrap.adopt("1000000:5") == nil)
        #expect(try Bootstrap.adopt("1000000:5:/a:b/c") == nil)
        #expect(try Bootstrap.adopt("0:5") == nil, "this program's standard input is no socket")
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

/// Programs that other code starts than `PortWorker`.
@Suite("Bootstrap ports of programs that other code starts", .workers) struct PortBootstrapTests {
    /// Starts a worker program with the library's own wrapper of `execve`.
    private func spawn(
        _ kind: String, _ bootstrap: borrowing PortBootstrap, as number: CInt, in scratch: ScratchDirectory
    ) throws -> (id: Int32, launched: LaunchedProcess) {
        var descriptors: [CInt?] = [nil, nil, nil]
        while descriptors.count <= number { descriptors.append(nil) }
        descriptors[Int(number)] = bootstrap.descriptor
        var environment: [String: String?] = ["XDG_RUNTIME_DIR": scratch.path]
        for (name, value) in bootstrap.environment(inheritedAs: number) { environment[name] = value }
        let id = try sysSpawn(
            builtProduct("port-test-peer"), arguments: ["worker", kind], environment: environment, in: nil,
            descriptors: descriptors)
        return (id, try #require(try LaunchedProcess.watching(child: id)))
    }

    private func waitForEnd(_ process: LaunchedProcess) throws -> WorkerExit? {
        _ = try sysPoll(process.rawValue, .readable, until: Watchdog.deadline)
        return try process.reap().map { WorkerExit($0) }
    }

    @Test(
        "such a program checks in, as its own process, and its port ends with it; it may get any descriptor",
        arguments: [0, 3, 9] as [CInt])
    func checkIn(number: CInt) async throws {
        try await withWorkers { scratch in
            let port = MachPort()
            let bootstrap = try PortBootstrap(to: port)
            #expect(fcntl(bootstrap.descriptor, F_GETFD) & FD_CLOEXEC != 0)
            let descriptor = bootstrap.descriptor
            let process = try spawn("facts", bootstrap, as: number, in: scratch)
            try bootstrap.connect(process: process.id)
            #expect(fcntl(descriptor, F_GETFD) == -1, "this process has the program's end no longer")
            let message = try #require(try port.receive(within: longTimeout))
            #expect(message.id == MachMessage.checkIn)
            #expect(message.sender.processID == process.id && message.sender.userID == sysUserID())
            let facts = message.text.split(separator: "\n").map(String.init)
            // Standard input is moved, and is no socket any more.
            #expect(facts.contains("closing \(max(number, 3))"), "\(facts)")
            // A descriptor of this process that has a number below may be there, too.
            if number < 4 { #expect(facts.contains("descriptors 0 1 2 3"), "\(facts)") }
            let right = try #require(message.replyPort)
            #expect(try right.ask(2) == "\(process.id)")
            try right.send(leave, within: longTimeout)
            #expect(try waitForEnd(process.launched) == .exited(status: 0))
            #expect(right.isDead)
            port.invalidate()
        }
    }

    @Test("a value that is released unconnected leaves the program a dead name, and so does the port's end")
    func unconnected() async throws {
        try await withWorkers { scratch in
            for isConnected in [false, true] {
                let port = MachPort()
                let process: (id: Int32, launched: LaunchedProcess)
                do {
                    let bootstrap = try PortBootstrap(to: port)
                    process = try spawn("silent", bootstrap, as: 3, in: scratch)
                    if isConnected { try bootstrap.connect(process: process.id) }
                }
                if isConnected { port.invalidate() }
                #expect(try waitForEnd(process.launched) == .exited(status: 0))
                port.invalidate()
            }
        }
    }

    @Test("an invalid port has none, and one that ends before the program is connected refuses it")
    func invalid() async throws {
        try await withWorkers { _ in
            let port = MachPort()
            let bootstrap = try PortBootstrap(to: port)
            port.invalidate()
            #expect(failure { _ = try PortBootstrap(to: port) }?.code == .invalidPort)
            var code: PortError.Code?
            do throws(PortError) { try bootstrap.connect(process: 1) } catch { code = error.code }
            #expect(code == .invalidPort)
        }
    }

    @Test("a worker passes its bootstrap right on to another process, which reaches the launcher's port directly")
    func passedOn() async throws {
        try await withWorkers { scratch in
            let (passing, other) = (
                try PortWorker.launchProcess(scratch.worker("passing")) { _, message in
                    try? message.reply(MachMessage(text: "the launcher, to \(message.sender.processID)"))
                },
                try PortWorker.launchProcess(scratch.worker("serve"))
            )
            let right = try passing.checkIn(within: longTimeout)
            let toOther = try other.checkIn(within: longTimeout)
            try passing.port.schedule()
            guard case .process(let id) = other.identity else { return #expect(Bool(false)) }
            let request = MachMessage(id: 98, components: [.right(toOther)])
            let reply = try right.request(
                request, sendLimit: longTimeout, replyLimit: longTimeout, mode: .default)
            #expect(reply.text == "the launcher, to \(id)")
            for worker in [passing, other] {
                #expect(try worker.shutDown(asking: leave, within: longTimeout) == .exited(status: 0))
            }
        }
    }

    @Test("a right to the launcher's port that comes later is equal to the bootstrap right, and keeps its statistics")
    func equal() async throws {
        try await withWorkers { scratch in
            let worker = try PortWorker.launchProcess(scratch.worker("passing"))
            let right = try worker.checkIn(within: longTimeout)
            let mine = worker.port.makeSendRight()
            let request = MachMessage(id: 97, components: [.right(mine)])
            #expect(try right.request(request, sendLimit: longTimeout, replyLimit: longTimeout).text == "equal")
            #expect(try worker.shutDown(asking: leave, within: longTimeout) == .exited(status: 0))
        }
    }
}
