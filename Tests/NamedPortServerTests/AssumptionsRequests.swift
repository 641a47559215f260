// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Assumptions of programs: requests", .ports) struct AssumptionsRequests {
    @Test(
        "A3, A4: a handler that returns nothing gives an empty reply; no data and empty data arrive as empty data",
        arguments: Transport.allCases)
    func empty(transport: Transport) async throws {
        try await withFixture { fixture in
            let seen = Recorder<[UInt8]>()
            try fixture.serving(over: transport) { _, message in
                seen.append(message.bytes)
                return nil
            } _: { remote, _, _ in
                for request in [MachMessage(id: 1), MachMessage(id: 2, bytes: [])] {
                    let reply = try remote.request(request, sendLimit: longTimeout, replyLimit: longTimeout)
                    #expect(reply.id == request.id)
                    #expect(reply.bytes == [])
                    #expect(reply.byteComponentCount == 1)
                }
            }
            #expect(seen.elements == [[], []])
        }
    }

    @Test("A3, A4: between processes too")
    func emptyBetweenProcesses() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                for act in [Act.silence, Act.reverse] {
                    #expect(try remote.request(MachMessage(id: act)).bytes == [])
                    #expect(try remote.request(MachMessage(id: act, bytes: [])).bytes == [])
                }
            }
        }
    }

    @Test(
        "A5: a request in a mode runs the caller's loop in it: its timers and sources come before the reply",
        arguments: Transport.allCases)
    func mode(transport: Transport) async throws {
        try await withFixture { fixture in
            for mode in [RunLoopMode.default, "own"] {
                let trace = Recorder<String>()
                let served = Gate("the timer, then the source")
                let loop = ThreadRunLoop.current
                let source = RunLoopSource {
                    trace.append("source")
                    served.open()
                }
                let timer = RunLoopTimer(fireDate: .now) { _ in
                    trace.append("timer")
                    source.signal()
                }
                try fixture.serving(over: transport) { _, _ in
                    served.wait()
                    return Array("reply".utf8)
                } _: { remote, _, _ in
                    loop.add(source, to: mode)
                    loop.add(timer, to: mode)
                    trace.append(try remote.ask(1, mode: mode))
                    source.invalidate()
                }
                #expect(trace.elements == ["timer", "source", "reply"])
            }
        }
    }

    @Test("A6: in the private mode nothing else runs", arguments: Transport.allCases)
    func privateMode(transport: Transport) async throws {
        try await withFixture { fixture in
            let trace = Recorder<String>()
            let loop = ThreadRunLoop.current
            let timer = RunLoopTimer(fireDate: .now) { _ in trace.append("timer") }
            loop.add(timer)
            loop.addCommonMode("common")
            try fixture.serving(over: transport) { _, _ in
                loop.perform { trace.append("block") }
                loop.perform(in: [.common]) { trace.append("common block") }
                loop.wakeUp()
                return Array("reply".utf8)
            } _: { remote, _, _ in
                trace.append(try remote.ask(1))
            }
            #expect(trace.elements == ["reply"])
            loop.run(for: .zero)
            #expect(trace.elements == ["reply", "block", "common block", "timer"])
        }
    }

    @Test("A7: each side's handler asks the other, which waits for it, six deep", arguments: Transport.allCases)
    func reentrancy(transport: Transport) async throws {
        try await withFixture { fixture in
            @Sendable func ask(_ name: String, _ depth: Int32) throws -> String {
                if depth == 0 { return "end" }
                return "\(name) " + (try fixture.remote(name, over: transport).ask(depth, mode: .default))
            }
            func serve(_ name: String, asking other: String) throws -> LocalMessagePort {
                try fixture.local(name) { _, message in
                    Array(((try? ask(other, message.id - 1)) ?? "an error").utf8)
                }
            }
            let (client, server) = (try serve("client", asking: "server"), try serve("server", asking: "client"))
            try client.schedule()
            try withLoopThread { loop in
                try server.schedule(on: loop)
                #expect(try ask("server", 6) == "server client server client server client end")
            }
            client.invalidate()
            server.invalidate()
        }
    }

    @Test("A7: the handler of another process asks the client that waits for it")
    func reentrancyBetweenProcesses() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let own = try fixture.local("client")
                try own.schedule()
                let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                let request = MachMessage(id: Act.callBack, text: "abc", replyPort: own.port.makeSendRight())
                #expect(
                    try remote.request(request, sendLimit: longTimeout, replyLimit: longTimeout, mode: .default).text
                        == "abc"
                )
                own.invalidate()
            }
        }
    }

    @Test(
        "A8: a message without a reply mode is sent when the call returns; no reader needs to be there",
        arguments: Transport.allCases)
    func oneWay(transport: Transport) async throws {
        try await withFixture { fixture in
            let seen = Recorder<Bool>()
            let local = try fixture.local { _, message in
                seen.append(message.expectsReply)
                return Array("unwanted".utf8)
            }
            let remote = try fixture.remote(over: transport)
            try remote.send(MachMessage(id: 1))
            #expect(seen.count == 0)
            try local.schedule()
            while seen.count == 0,
                ThreadRunLoop.current.run(for: longTimeout, returnAfterSourceHandled: true) == .handledSource
            {}
            #expect(seen.elements == [false])
            local.invalidate()
        }
    }

    @Test("A9: a request whose reply is discarded waits for it all the same", arguments: Transport.allCases)
    func replyDropped(transport: Transport) async throws {
        try await withFixture { fixture in
            let seen = Counter()
            try fixture.serving(over: transport) { _, _ in
                seen.increment()
                return [1]
            } _: { remote, _, _ in
                try remote.request(MachMessage(), sendLimit: longTimeout, replyLimit: longTimeout)
                #expect(seen.value == 1)
            }
        }
    }

    @Test(
        "A12: a handler that is too slow is a receive timeout; its reply is never given to a later request",
        arguments: Transport.allCases)
    func tooSlow(transport: Transport) async throws {
        try await withFixture { fixture in
            let late = Gate("the client's time was up")
            try fixture.serving(over: transport) { _, message in
                if message.id == 1 { late.wait() }
                return Array((message.id == 1 ? "late" : "own").utf8)
            } _: { remote, _, _ in
                for limit in [Duration.zero, .milliseconds(1), .replyLimit(cfSeconds: 0.05)] {
                    let error = failure { _ = try remote.request(MachMessage(id: 1), replyLimit: limit) }
                    #expect(error?.code == .replyTimedOut)
                    #expect(error?.cfStatus == -2)
                }
                late.open()
                for mode in [RunLoopMode.portReply, .default, .portReply, .default] {
                    let reply = try remote.ask(2, mode: mode)
                    #expect(reply == "own")
                }
            }
        }
    }

    @Test("A12: between processes too")
    func tooSlowBetweenProcesses() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                let error = failure { _ = try remote.request(MachMessage(id: Act.keep), replyLimit: .milliseconds(10)) }
                #expect(error?.cfStatus == -2)
                try server.expect("retained")
                #expect(try remote.ask(Act.answer) == "1")
                try server.expect("error deadName")
                #expect(try remote.ask(Act.reverse, "own") == "nwo")
            }
        }
    }

    @Test(
        "A18: a handler ends its own port and stops the loop; its pending reply is still sent",
        arguments: Transport.allCases)
    func lastReply(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = try fixture.local { port, _ in
                port.invalidate()
                ThreadRunLoop.current.stop()
                return Array("gone".utf8)
            }
            let ready = Gate()
            let server = runOnThread {
                try local.schedule()
                ready.open()
                return ThreadRunLoop.current.run(for: longTimeout)
            }
            ready.wait()
            let remote = try fixture.remote(over: transport)
            #expect(try remote.ask(1) == "gone")
            #expect(try server.join() == .stopped)
            #expect(!remote.isValid)
        }
    }

    @Test("A18: between processes too")
    func lastReplyBetweenProcesses() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let remote = try RemoteMessagePort.shared(name: "server", nameServer: fixture.names)
                #expect(try remote.ask(Act.leave) == "gone")
                try server.waitForExit()
                #expect(!remote.isValid)
            }
        }
    }
}
