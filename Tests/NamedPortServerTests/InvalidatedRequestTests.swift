// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// The requests to a server that never replies, and the clients that have given up.
private struct RequestLog: Sendable {
    let requests = Recorder<MachMessage>("requests")
    let givenUp = Counter("requests that were given up")

    /// Stores the reply right.
    func keep(_ message: MachMessage) -> [UInt8]? {
        guard let right = message.takeReplyRight() else { return [] }
        var copy = MachMessage(id: message.id)
        copy.setReplyRight(right)
        copy.setCancellationHandler(on: .current) { [givenUp] in givenUp.increment() }
        requests.append(copy)
        return nil
    }
}

@Suite("Remote ports that are invalidated while requests wait on them", .shared)
struct InvalidatedRequestTests {
    /// Calls `body` with a client of a port that stores all requests.
    private func withLog(
        over transport: Transport, _ body: @escaping @Sendable (RemoteMessagePort, RequestLog) throws -> Void
    )
        async throws
    {
        try await withFixture { fixture in
            let log = RequestLog()
            try fixture.serving(over: transport) { _, message in
                log.keep(message)
            } _: { remote, _, _ in
                try body(remote, log)
                _ = log.requests.takeAll()
            }
        }
    }

    @Test(
        "by the waiting loop's timer: -5, the receiver is notified, nothing can be sent", arguments: Transport.allCases)
    func ownTimer(transport: Transport) async throws {
        try await withLog(over: transport) { remote, log in
            let timer = RunLoopTimer(after: .zero) { _ in
                log.requests.waitUntilCount(1)
                remote.invalidate()
            }
            ThreadRunLoop.current.add(timer)
            let error = failure { _ = try remote.ask(1, mode: .default) }
            #expect(error?.code == .peerDied)
            #expect(error?.cfStatus == -5)
            #expect(error?.delivery == (transport == .memory ? .read : .unknown))
            log.givenUp.waitUntilCount(1)
            #expect(log.requests.elements.map(\.isCancelled) == [true])
            #expect(failure { _ = try remote.ask(1) }?.code == .invalidPort)
        }
    }

    @Test(
        "by another thread, which ends the requests of all threads that share the object", arguments: Transport.allCases
    )
    func otherThread(transport: Transport) async throws {
        try await withLog(over: transport) { remote, log in
            let modes = [RunLoopMode.portReply, .default, .portReply]
            let asking = modes.map { mode in
                runOnThread { failure { _ = try remote.ask(1, mode: mode) } }
            }
            log.requests.waitUntilCount(modes.count)
            remote.invalidate()
            let codes = try asking.map { try $0.join()?.code }
            #expect(codes == [.peerDied, .peerDied, .peerDied])
            log.givenUp.waitUntilCount(modes.count)
        }
    }

    @Test("a task's", arguments: Transport.allCases)
    func task(transport: Transport) async throws {
        try await withLog(over: transport) { remote, log in
            let codes = Recorder<PortError.Code>("errors")
            Task {
                do throws(PortError) {
                    try await remote.request(MachMessage(id: 1), sendLimit: longTimeout, replyLimit: longTimeout)
                } catch {
                    codes.append(error.code)
                }
            }
            log.requests.waitUntilCount(1)
            remote.invalidate()
            #expect(codes.waitUntilCount(1) == [.peerDied])
            log.givenUp.waitUntilCount(1)
        }
    }

    @Test("another object for the port, and the port, go on; a request that has its reply is not affected")
    func others() async throws {
        try await withFixture { fixture in
            try fixture.serving(over: .socket) { _, message in
                message.bytes.reversed()
            } _: { remote, _, _ in
                let other = try fixture.remote(over: .socket)
                #expect(try remote.ask(1, "abc") == "cba")
                remote.invalidate()
                #expect(try other.ask(1, "abc") == "cba")
            }
        }
    }

    @Test("between processes: the server's later reply finds no request")
    func otherProcess() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let remote = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                let asking = runOnThread { failure { _ = try remote.ask(Act.keep) } }
                try server.expect("retained")
                remote.invalidate()
                #expect(try asking.join()?.cfStatus == -5)
                let other = try RemoteMessagePort(name: "server", nameServer: fixture.names)
                #expect(try other.ask(Act.answer) == "1")
                try server.expect("error deadName")
            }
        }
    }

    @Test(
        "at any moment of a request, 200 times: it ends with its reply, or as the object does",
        arguments: Transport.allCases)
    func race(transport: Transport) async throws {
        try await withFixture { fixture in
            try fixture.serving(over: transport) { _, message in
                message.bytes.reversed()
            } _: { first, _, _ in
                for round in 0..<200 {
                    let remote = RemoteMessagePort(name: "name", right: first.right)
                    let start = Gate("the start")
                    let ending = runOnThread {
                        start.wait()
                        let moment = MonotonicInstant.after(.microseconds(round))
                        while .now < moment {}
                        remote.invalidate()
                    }
                    start.open()
                    let error = failure {
                        let reply = try remote.ask(1, "abc")
                        #expect(reply == "cba")
                    }
                    #expect(error == nil || error?.code == .peerDied || error?.code == .invalidPort)
                    try ending.join()
                }
            }
        }
    }
}
