// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

/// Listings 3-16 to 3-19 of Apple's Run Loops chapter: rows S18 and S19 of the documents.
@Suite("Named ports of the Run Loops chapter", .ports) struct ListingTests {
    @Test(
        "S18: a port with a unique name is found by threads and processes, and by none after it has ended (listing 3-16)"
    )
    func messagePort() async throws {
        try await withFixture { fixture in
            let name = "org.example.port.\(PeerIdentity.current.processID)"
            let texts = Recorder<String>("messages")
            let port = MachPort { _, message in
                texts.append(message.text)
                try? message.reply(MachMessage(id: message.id, text: "yes"))
            }
            try fixture.names.register(port, name: name)
            #expect(failure { try fixture.names.register(MachPort(), name: name) }?.code == .nameTaken)
            try withLoopThread { loop in
                try port.schedule(on: loop)
                let right = try runOnThread { try fixture.names.lookUp(name) }.join()
                #expect(right == port.makeSendRight())
                #expect(try right.request(MachMessage(id: 1, text: "thread")).text == "yes")
                try withPeer(["ask", fixture.directory, name, "1", "process"], at: fixture) { peer in
                    #expect(try peer.nextLine() == "reply yes")
                    _ = try peer.waitForExit()
                }
                #expect(texts.elements == ["thread", "process"])
                port.invalidate()
            }
            #expect(failure { _ = try fixture.names.lookUp(name) }?.code == .nameUnknown)
        }
    }

    @Test(
        "S19: a worker gets a local port's name, checks in with its own port's, and both directions work (3-17 to 3-19)",
        arguments: [true, false])
    func checkInByName(isThread: Bool) async throws {
        try await withFixture { fixture in
            let loop = ThreadRunLoop.current
            let checkIns = Recorder<String>("check-ins")
            let (mainName, asked) = ("com.example.main", Recorder<String>("what the worker asked for"))
            let main = try LocalMessagePort(name: mainName, nameServer: fixture.names) { _, message in
                if message.id == MachMessage.checkIn {
                    checkIns.append(message.text)
                    loop.stop()
                    return nil
                }
                asked.append(message.text)
                return Array("main \(message.text)".utf8)
            }
            try main.schedule()
            // Waits for the check-in, and finds the port whose name it carries.
            func findWorker() throws -> RemoteMessagePort {
                loop.run(for: longTimeout)
                return try RemoteMessagePort(
                    name: try #require(checkIns.elements.first), nameServer: fixture.names)
            }
            if isThread {
                let worker = runOnThread {
                    let loop = ThreadRunLoop.current
                    let main = try RemoteMessagePort(name: mainName, nameServer: fixture.names)
                    let own = try LocalMessagePort(name: "com.example.worker", nameServer: fixture.names) {
                        _, message in
                        if message.id == 99 {
                            loop.stop()
                            return nil
                        }
                        // The other direction, while main waits.
                        let answer = try? main.request(MachMessage(id: 1, text: message.text)).text
                        return Array("worker, \(answer ?? "none")".utf8)
                    }
                    try own.schedule()
                    try main.request(MachMessage(id: MachMessage.checkIn, text: own.name ?? ""))
                    loop.run(for: longTimeout)
                    own.invalidate()
                }
                let port = try findWorker()
                #expect(port.name == "com.example.worker")
                let reply = try port.request(MachMessage(id: 1, text: "abc"), mode: .default)
                #expect(reply.text == "worker, main abc")
                try port.send(MachMessage(id: 99), sendLimit: longTimeout)
                try worker.join()
                #expect(asked.elements == ["abc"])
            } else {
                try withPeer(["check-in", fixture.directory, mainName, "name"], at: fixture) { peer in
                    let port = try findWorker()
                    #expect(port.name == "worker.\(peer.processID)")
                    let reversed = try port.ask(Act.reverse, "abc")
                    #expect(reversed == "cba")
                    // The other direction: the worker asks the right that it gets, which is main's.
                    let request = MachMessage(id: Act.askOther, components: [.right(main.port.makeSendRight())])
                    let answer = try port.request(request, mode: .default).text
                    #expect(answer == "main ")
                }
            }
            main.invalidate()
        }
    }
}
