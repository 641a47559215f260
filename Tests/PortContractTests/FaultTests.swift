// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

#if PORT_FAULTS

import ContractServices
import Glibc
@testable import MessagePort
import PortSystem
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

/// Forced results of system calls: the error has the right code, nothing hangs or leaks, and the port works afterwards.
@Suite("forced faults", .contract) struct FaultTests {
    typealias Rule = SystemCallFaults.Rule

    @Test(
        "interrupted calls are made again",
        arguments: [SystemCall.sendmsg, .recvmsg, .accept, .poll, .epoll_wait, .epoll_ctl],
        [TestTransport.socket, .ring])
    func interrupted(_ call: SystemCall, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let (result, _) = try SystemCallFaults.with([Rule(call, .fail(EINTR), times: 5)]) {
                let port = try bench.port()
                let right = try bench.right(to: port)
                let sender = runOnThread {
                    try SystemCallFaults.with([Rule(call, .fail(EINTR), times: 5)]) {
                        try right.send(MachMessage(id: 4, bytes: pattern(500_000)))
                    }.hits
                }
                let message = try port.next()
                _ = try sender.join()
                return message.id
            }
            #expect(result == 4)
        }
    }

    @Test("a socket that has no room for a moment delays a message, and does not lose it")
    func noRoom() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let (_, hits) = try SystemCallFaults.with([Rule(.sendmsg, .fail(EAGAIN), times: 3)]) {
                try right.send(MachMessage(id: 1))
            }
            #expect(hits == 3)
            // It has a full connection read, and tries again.
            let (wasSent, _) = try SystemCallFaults.with([Rule(.sendmsg, .fail(EAGAIN), times: 100)]) {
                try right.trySend(MachMessage(id: -1))
            }
            #expect(!wasSent)
            #expect(try port.next().id == 1)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test(
        "a kernel without memory: the send fails with its number, later ones succeed", arguments: [ENOBUFS, ENOMEM],
        [0, 1])
    func noMemory(code: CInt, skipping: Int) async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let message = MachMessage(id: -1, bytes: pattern(100_000))
            let (error, hits) = SystemCallFaults.with([Rule(.sendmsg, .fail(code), skipping: skipping)]) {
                portError { () throws(PortError) in try right.send(message) }
            }
            #expect(hits == 1)
            #expect(error?.code == .systemCallFailed)
            #expect(error?.systemError == SystemError(code))
            try right.send(MachMessage(id: 2, bytes: message.bytes.suffix(10)))
            #expect(try port.next().id == 2)
            #expect(try port.tryReceive()?.id == nil)
        }
    }

    @Test("a request whose send fails leaves no thread waiting", arguments: [ENOBUFS, EPIPE])
    func failedRequest(code: CInt) async throws {
        try await onBench(over: .socket) { bench in
            let (mine, port) = (try bench.port(), try bench.port())
            let right = try bench.right(to: port)
            let message = carrying(mine.makeSendOnceRight())
            let (error, _) = SystemCallFaults.with([Rule(.sendmsg, .fail(code))]) {
                portError { () throws(PortError) in try right.send(message) }
            }
            #expect(error?.code == (code == EPIPE ? .deadName : .systemCallFailed))
            #expect(message.expectsReply)
            try message.reply(MachMessage(id: 9))
            #expect(try mine.next().id == 9)
        }
    }

    @Test("a reply that the kernel refuses throws, and the requester learns that none comes")
    func failedReply() async throws {
        try await onBench(over: .socket) { bench in
            let errors = Recorder<PortError?>()
            try bench.serving({ _, message in
                let (error, _) = SystemCallFaults.with([Rule(.sendmsg, .fail(ENOBUFS))]) {
                    portError { () throws(PortError) in try message.reply(MachMessage()) }
                }
                errors.append(error)
            }) { right, _, _ in
                #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .replyDropped)
                #expect(errors.waitUntilCount(1).map { $0?.code } == [.systemCallFailed])
            }
        }
    }

    @Test(
        "a notice that finds no room, or no memory in the kernel, is sent later", arguments: [EAGAIN, ENOBUFS],
        [TestTransport.socket, .ring])
    func delayedNotice(code: CInt, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            try bench.serving({ _, message in
                _ = SystemCallFaults.with([Rule(.sendmsg, .fail(code))]) { message.takeReplyRight()?.drop() }
            }) { right, _, _ in
                #expect(portError { () throws(PortError) in _ = try right.ask(MachMessage()) }?.code == .replyDropped)
            }
        }
    }

    @Test(
        "a kernel without memory for a packet loses none: it is read later", arguments: [ENOBUFS, ENOMEM],
        [TestTransport.socket, .ring])
    func noMemoryToReceive(code: CInt, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            try #require(right.destination as? RemotePort).reached().sender.credit.setUnlimited()
            try right.send(MachMessage(id: 1))
            try right.send(MachMessage(id: 2))
            let (ids, hits) = try SystemCallFaults.with([Rule(.recvmsg, .fail(code), times: 2)]) {
                [try port.next().id, try port.next().id]
            }
            #expect(hits == 2)
            #expect(ids == [1, 2])
        }
    }

    @Test("a process that has no descriptor left gets that error when it connects, and nothing leaks")
    func connectAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port(acceptsInBackground: false)
            for call in [SystemCall.socket, .getsockopt] {
                let error = expectNoNewDescriptors {
                    SystemCallFaults.with([Rule(call, .fail(EMFILE))]) {
                        portError { () throws(PortError) in _ = try RightsTable.connect(to: port.localPort.address()) }
                    }.result
                }
                #expect(error?.code == .descriptorLimit)
            }
        }
    }

    @Test("a port that cannot get an address says why, and can get it later", arguments: [0, 1, 2])
    func addressAtLimit(skipping: Int) async throws {
        try await onBench(over: .socket) { bench in
            let seen = Gate("a message by socket")
            let port = MachPort { _, _ in seen.open() }
            let worker = Worker()
            try port.schedule(on: worker.loop)
            _ = try bench.directory.endpoints()
            var errors: [PortError.Code] = []
            for call in [SystemCall.epoll_create, .epoll_ctl, .socket, .bind, .listen, .rename] {
                let (error, hits) = SystemCallFaults.with([Rule(call, .fail(EMFILE), skipping: skipping)]) {
                    portError { () throws(PortError) in _ = try port.localPort.address(in: bench.directory) }
                }
                if hits > 0, let error { errors.append(error.code) }
            }
            #expect(Set(errors).isSubset(of: [.descriptorLimit]))
            if skipping == 0 { #expect(errors.count == 6) }
            try bench.right(to: port).send(MachMessage())
            seen.wait()
            port.invalidate()
            try worker.end()
        }
    }

    @Test("a right that cannot take the end of a pipe along is not sent, and can be later", arguments: [0, 1])
    func rightAtLimit(place: Int) async throws {
        try await onBench(over: .socket) { bench in
            let (port, other) = (try bench.port(), try bench.port())
            try port.notifyWhenNoSenders(on: .current) {}
            let right = try bench.right(to: other)
            try right.send(MachMessage())
            _ = try other.next()
            let message = MachMessage(id: 4, components: [.right(port.makeSendRight())])
            let (error, hits) = expectNoNewDescriptors {
                defer { waitUntilDescriptorsAreClosed() }
                return SystemCallFaults.with([Rule([SystemCall.pipe, .epoll_ctl][place], .fail(EMFILE))]) {
                    portError { () throws(PortError) in try right.send(message) }
                }
            }
            #expect(hits == 1 && error?.code == .descriptorLimit)
            #expect(try other.tryReceive()?.id == nil)
            try right.send(message)
            #expect(try other.next().rights == message.rights)
        }
    }

    @Test("a right that was found by its address is not passed on before its port is sent the read end of a pipe")
    func announcementAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let (port, other) = (try bench.port(), try bench.port())
            try port.notifyWhenNoSenders(on: .current) {}
            let (found, right) = (try bench.right(to: port), try bench.right(to: other))
            let message = MachMessage(id: 4, components: [.right(found)])
            let faults: [(SystemCall, CInt, PortError.Code)] = [
                (.pipe, EMFILE, .descriptorLimit), (.sendmsg, ENOBUFS, .systemCallFailed),
                (.sendmsg, ETOOMANYREFS, .descriptorsInFlight), (.sendmsg, EAGAIN, .sendTimedOut),
            ]
            for (call, code, expected) in faults {
                let (error, hits) = SystemCallFaults.with([Rule(call, .fail(code))]) {
                    portError { () throws(PortError) in try right.send(message, within: .zero) }
                }
                #expect(hits == 1 && error?.code == expected)
            }
            #expect(try other.tryReceive()?.id == nil)
            let (_, hits) = try SystemCallFaults.with([Rule(.sendmsg, .fail(EAGAIN), times: 3)]) {
                try right.send(message)
            }
            #expect(hits == 3)
            #expect(try other.next().id == 4)
            _ = try port.tryReceive()
            #expect(try #require(port.localPort.sockets).state.withLock { $0.readEnds.count } == 1)
        }
    }

    @Test("a port that cannot be scheduled because no descriptor is left says so, and can be later")
    func scheduleAtLimit() async throws {
        try await onBench(over: .socket) { bench in
            let port = try bench.port { port, _ in port.invalidate() }
            for skipping in 0..<3 {
                for call in [SystemCall.epoll_create, .epoll_ctl, .eventfd] {
                    let (error, hits) = SystemCallFaults.with([
                        Rule(call, .fail(EMFILE), skipping: skipping), Rule(.pipe, .fail(EMFILE)),
                    ]) {
                        portError { () throws(PortError) in try port.schedule() }
                    }
                    if let error { #expect(error.code == .descriptorLimit) }
                    if hits > 0 { #expect(error != nil || call == .eventfd) }
                    port.unschedule()
                }
            }
            try port.schedule()
            try bench.right(to: port).send(MachMessage())
            #expect(ThreadRunLoop.current.run(for: longTimeout) == .finished)
        }
    }

    @Test(
        "a request that cannot wait because no descriptor is left was not sent", arguments: [0, 1, 2],
        [TestTransport.socket, .ring])
    func requestAtLimit(skipping: Int, over transport: TestTransport) async throws {
        try await onBench(over: transport) { bench in
            let port = try bench.port()
            let right = try bench.right(to: port)
            let (error, hits) = SystemCallFaults.with([Rule(.epoll_create, .fail(EMFILE), skipping: skipping)]) {
                portError { () throws(PortError) in _ = try right.request(MachMessage(id: -1), replyLimit: .zero) }
            }
            if hits > 0 {
                #expect(error?.code == .descriptorLimit)
                #expect(try port.tryReceive()?.id == nil)
            } else {
                #expect(error?.code == .replyTimedOut)
            }
            // The notice of the port's end needs the same.
            let (noticeError, noticeHits) = SystemCallFaults.with([Rule(.epoll_ctl, .fail(EMFILE))]) {
                portError { () throws(PortError) in try right.notifyWhenDead { _ in } }
            }
            if noticeHits > 0 { #expect(noticeError?.code == .descriptorLimit) }
        }
    }

    @Test(
        "descriptors that cannot be received are lost with the message; the requester learns it, the connection lives",
        arguments: ["socket", "ring"])
    func descriptorsLost(over name: String) async throws {
        await #expect(processExitsWith: .success) { [name = name as String] in
            await Pools.start()
            ReservedDescriptor.shared.reserve()
            try await onBench(over: #require(TestTransport(rawValue: name))) { bench in
                let port = try bench.port()
                let right = try bench.right(to: port)
                try right.send(MachMessage(id: 1))
                try #require(right.destination as? RemotePort).reached().sender.credit.setUnlimited()
                _ = try port.next()
                #expect(try port.tryReceive()?.id == nil)  // reads a wake-up, too
                let requester = runOnThread {
                    let pipe = try TestPipe()
                    let message = MachMessage(components: [.descriptor(pipe.reading), .descriptor(pipe.writing)])
                    return portError { () throws(PortError) in _ = try right.ask(message) }?.code
                }
                let deadline = Watchdog.deadline
                while port.localPort.sockets?.isReadable != true, .now < deadline { sched_yield() }
                try atDescriptorLimit { port.localPort.receiveFromSockets() }
                #expect(try requester.join() == .descriptorsLost)
                #expect(port.queueCount == 0)
                try right.send(MachMessage(id: 2))
                #expect(try port.next().id == 2)
            }
        }
    }
}

extension FaultTests {
    @Test(
        "a spare descriptor that another thread used is made again; until then no loop spins, then all are refused"
    )
    func spareLost() async throws {
        await #expect(processExitsWith: .success) {
            await Pools.start()
            ReservedDescriptor.shared.reserve()
            try await onBench(over: .socket) { bench in
                let port = try bench.port(acceptsInBackground: false)
                let late = [try RawPeer(to: port, on: bench), try RawPeer(to: port, on: bench)]
                // The thread that would poll the listener again is blocked until it may.
                let (mayGoOn, loop) = (Gate("the listener was seen to be left alone"), try IOThread.loop())
                _ = try loop.parker.wakeEvent()  // what it needs to watch a descriptor
                loop.perform(in: [.default]) { mayGoOn.wait() }
                try withAllDescriptorsTaken {
                    let thief = Mutex<SharedDescriptor?>(nil)
                    _ = ReservedDescriptor.shared.lend {
                        let taken = try? runOnThread { SharedDescriptor(try sysPacketSocket()) }.join()
                        thief.withLock { $0 = taken }
                        return false
                    }
                    #expect(ReservedDescriptor.shared.isMissing)
                    port.localPort.receiveFromSockets()
                    let sockets = try #require(port.localPort.sockets)
                    #expect(sockets.epoll.wait(until: .distantPast).isEmpty)
                    thief.withLock { $0 = nil }
                    mayGoOn.open()
                    #expect(try sysPoll(sockets.rawValue, .readable, until: Watchdog.deadline) == .readable)
                    port.localPort.receiveFromSockets()
                    for peer in late {
                        #expect(try sysPoll(peer.socket.rawValue, .readable, until: .distantPast).contains(.readable))
                        let refusal = try peer.next()
                        #expect(refusal?.messageID == Int32(PortError.Code.descriptorLimit.rawValue))
                    }
                }
            }
        }
    }
}

/// Runs `body` while the process has all the descriptors that it may have. For exit tests only.
private func withAllDescriptorsTaken(_ body: () throws -> Void) throws {
    try withDescriptorLimit(256) {
        var taken: [SharedDescriptor] = []
        while let next = try? sysPacketSocket() { taken.append(SharedDescriptor(next)) }
        try body()
        withExtendedLifetime(taken) {}
    }
}

/// Runs `body` while the process may open no more descriptors. For exit tests only.
private func atDescriptorLimit(_ body: () throws -> Void) throws {
    try withDescriptorLimit(0, body)
}

extension PortSockets {
    /// Whether something waits in the sockets.
    var isReadable: Bool {
        (try? sysPoll(rawValue, .readable, until: .distantPast).isEmpty) == false
    }
}

#endif
