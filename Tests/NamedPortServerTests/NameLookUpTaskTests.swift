// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(
    "Looking names up in tasks",
    .leakCheck(threadNames: ["port-send"], settles: true, warmingUp: makeSpareDescriptor))
struct NameLookUpTaskTests {
    /// What a look-up of a task throws.
    private func code(
        _ names: PortNameServer, _ name: String, within limit: Duration = PortNameServer.lookUpLimit
    ) async -> PortError.Code? {
        do throws(PortError) {
            _ = try await names.lookUp(name, within: limit)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("a task gets the right that a thread gets, and learns that no port has a name")
    func found() async throws {
        try await withAsyncFixture { fixture in
            let port = MachPort()
            #expect(await code(fixture.names, "name") == .nameUnknown)
            try fixture.names.register(port, name: "name")
            #expect(try await fixture.names.lookUp("name") == port.makeSendRight())
            #expect(try await fixture.names.lookUp("name", within: .zero) == port.makeSendRight())
            #expect(await code(fixture.names, "") == .nameEmpty)
            port.invalidate()
        }
    }

    @Test("a task that is cancelled before it looks a name up gets an error that names it")
    func cancelledBefore() async throws {
        try await withAsyncFixture { fixture in
            let error = await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                do throws(PortError) {
                    _ = try await fixture.names.lookUp("name")
                    return PortError?.none
                } catch {
                    return error
                }
            }.value
            #expect(error?.code == .cancelled && error?.delivery == .notSent)
            #expect(error?.description.contains("the port \"name\"") == true)
        }
    }

    @Test(
        "tasks wait where too many clients wait to be accepted, hold no thread, and end at their limit or cancellation")
    func busy() async throws {
        try await withAsyncFixture { fixture in
            _ = await code(fixture.names, "busy")  // makes the directory
            mkdir(fixture.directory + "/declared", 0o700)
            let path = "\(fixture.directory)/declared/busy"
            let socket = try packetListener(at: path, backlog: 0)
            let first = SharedDescriptor(try sysPacketSocket())
            #expect(try sysConnect(first.rawValue, path: path))
            #expect(await code(fixture.names, "busy", within: .zero) == .sendTimedOut)
            let before = MonotonicInstant.now
            #expect(await code(fixture.names, "busy", within: .milliseconds(50)) == .sendTimedOut)
            #expect(before.duration(to: .now) >= .milliseconds(50))
            let threads = threadCount()
            let waiting = (0..<50).map { _ in
                Task { await code(fixture.names, "busy", within: .seconds(100_000)) }
            }
            let client = Task { try await fixture.names.lookUp("busy", within: longTimeout) }
            for _ in 0..<100 { await Task.yield() }
            #expect(threadCount() < threads + 20)
            for task in waiting { task.cancel() }
            for task in waiting { #expect(await task.value == .cancelled) }
            _ = try sysAccept(socket.rawValue)
            #expect(try await !client.value.isDead)
        }
    }

    @Test("a task makes remote ports as a thread does, sends, and learns that they are invalid")
    func remotePorts() async throws {
        try await withAsyncFixture { fixture in
            let received = Recorder<Int32>("received messages")
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names) { _, message in
                received.append(message.id)
                return nil
            }
            let thread = try ResidentThread(name: "port-send owner")
            try local.schedule(on: thread.loop)
            let shared = try await RemoteMessagePort.shared(name: "name", nameServer: fixture.names)
            #expect(try await RemoteMessagePort.shared(name: "name", nameServer: fixture.names) === shared)
            let own = try await RemoteMessagePort(name: "name", nameServer: fixture.names)
            #expect(own == shared && own !== shared)
            try await own.send(MachMessage(id: 1), sendLimit: longTimeout)
            try await shared.request(MachMessage(id: 2))
            #expect(received.elements == [1, 2])
            own.invalidate()
            let error = await Task {
                do throws(PortError) {
                    try await own.send(MachMessage(id: 3))
                    return PortError?.none
                } catch {
                    return error
                }
            }.value
            #expect(error?.code == .invalidPort)
            local.invalidate()
            thread.stop()
            #expect(await thread.join())
        }
    }

    @Test("a task that sends to a remote port waits for room, and sends nothing when it is cancelled")
    func room() async throws {
        try await withAsyncFixture { fixture in
            let local = try LocalMessagePort(name: "name", nameServer: fixture.names, queueLimit: 1) { _, _ in nil }
            let remote = try await RemoteMessagePort(name: "name", nameServer: fixture.names)
            try await remote.send(MachMessage(id: 1), sendLimit: .zero)
            let task = Task {
                do throws(PortError) {
                    try await remote.send(MachMessage(id: 2), sendLimit: .seconds(100_000))
                    return PortError.Code?.none
                } catch {
                    return error.code
                }
            }
            for _ in 0..<100 { await Task.yield() }
            task.cancel()
            #expect(await task.value == .cancelled)
            local.invalidate()
        }
    }

    @Test("a task gets the statistics of all names at once")
    func statistics() async throws {
        try await withAsyncFixture { fixture in
            let port = MachPort()
            for name in ["one", "two"] { try fixture.names.register(port, name: name) }
            let answers = try await fixture.names.listStatistics(within: longTimeout)
            #expect(answers.map(\.registration.name) == ["one", "two"])
            #expect(answers.allSatisfy { $0.statistics == port.statistics })
            port.invalidate()
        }
    }

    @Test("a task that stops a trace service goes on when the service's thread has ended")
    func traceService() async throws {
        try await withAsyncFixture { fixture in
            let service = try TraceService.start(tracing: [], nameServer: fixture.names)
            #expect(try fixture.names.list().count == 1)
            await service.stop()
            await service.stop()
            #expect(try fixture.names.list() == [])
        }
    }
}
