// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite("Rights and descriptors between processes", .leakCheck(warmingUp: makeSpareDescriptor))
struct RightsAcrossProcessesTests {
    @Test("a worker checks in with a right to its own port, or with its port's name", arguments: ["right", "name"])
    func checkIn(way: String) async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "main")
            try withPeer(["check-in", fixture.directory, "main", way], at: fixture) { worker in
                let message = try #require(try port.receive(within: longTimeout))
                #expect(message.id == 100)
                #expect(message.sender.processID == worker.processID)
                let named = try fixture.names.lookUp("worker.\(worker.processID)")
                if way == "right" {
                    #expect(message.replyPort == named)
                } else {
                    #expect(message.replyPort == nil)
                    #expect(message.text == "worker.\(worker.processID)")
                }
                #expect(
                    try (message.replyPort ?? named).request(MachMessage(id: Act.process)).text == "\(worker.processID)"
                )
            }
            port.invalidate()
        }
    }

    @Test("a process passes a right to a third party's port on, and that is reached directly")
    func thirdParty() async throws {
        try await withFixture { fixture in
            try withServer("b", at: fixture) { _ in
                try withServer("c", at: fixture) { c in
                    let (toB, toC) = (try fixture.names.lookUp("b"), try fixture.names.lookUp("c"))
                    let request = MachMessage(id: Act.askOther, components: [.right(toC)])
                    #expect(try toB.request(request).text == "\(c.processID)")
                }
            }
        }
    }

    @Test("a right to this process's own port comes back as the port itself")
    func ownRight() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { _ in
                let own = try LocalMessagePort(name: "own", nameServer: fixture.names) { _, message in
                    Array("own \(message.id)".utf8)
                }
                try own.schedule()
                let right = try fixture.names.lookUp("server")
                let request = MachMessage(id: Act.askOther, components: [.right(own.port.makeSendRight())])
                #expect(try right.request(request, mode: .default).text == "own \(Act.process)")
                own.invalidate()
            }
        }
    }

    @Test("a port that has no name travels as a right, and lives until its process ends")
    func unnamedPort() async throws {
        // A process that ends leaves its lock file in the directory that it shares with all others; the next one sweeps
        // it.
        try await withFixture(leaving: .anything) { fixture in
            let right = try withServer(at: fixture) { server in
                let right = try fixture.names.lookUp("server")
                let reply = try right.request(MachMessage(id: Act.make))
                let made = try #require(reply.rights.first)
                #expect(made != right)
                #expect(try made.request(MachMessage(id: 1, text: "abc")).text == "cba")
                #expect(try right.request(MachMessage(id: Act.make)).rights.first != made)
                #expect(try fixture.names.list().map(\.name) == ["server"])
                return made
            }
            #expect(right.isDead)
            #expect(failure { try right.send(MachMessage(id: 1), within: .zero) }?.code == .deadName)
        }
    }

    @Test("a right to a dead port arrives as a dead name")
    func deadRight() async throws {
        try await withFixture { fixture in
            try withServer("b", at: fixture) { _ in
                let toB = try fixture.names.lookUp("b")
                let toC = try withServer("c", at: fixture) { _ in try fixture.names.lookUp("c") }
                let request = MachMessage(id: Act.askOther, components: [.right(toC)])
                #expect(try toB.request(request).text == "error deadName")
            }
        }
    }

    @Test("a request that is forwarded to another process is answered by that process, once")
    func handOn() async throws {
        try await withFixture { fixture in
            try withServer("b", at: fixture) { _ in
                try withServer("c", at: fixture) { c in
                    let (toB, toC) = (try fixture.names.lookUp("b"), try fixture.names.lookUp("c"))
                    for _ in 0..<3 {
                        let request = MachMessage(id: Act.handOn, components: [.right(toC)])
                        #expect(try toB.request(request).text == "\(c.processID)")
                    }
                    #expect(try toB.request(MachMessage(id: Act.reverse, text: "on")).text == "no")
                }
            }
        }
    }

    @Test("the death of a process to which a request was forwarded is reported")
    func forwardedToDeadProcess() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withServer("b", at: fixture) { b in
                try withServer("c", at: fixture, endsAs: .signalled(SIGKILL)) { c in
                    let (toB, toC) = (try fixture.names.lookUp("b"), try fixture.names.lookUp("c"))
                    try c.killAndReap()
                    let error = failure {
                        _ = try toB.request(
                            MachMessage(id: Act.handOn, components: [.right(toC)]), replyLimit: longTimeout)
                    }
                    #expect(error?.code == .replyDropped || error?.code == .peerDied)
                    try b.expect("error deadName")
                }
            }
        }
    }

    @Test("a descriptor that was passed works in the other process, and nothing of it stays behind")
    func descriptor() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let right = try fixture.names.lookUp("server")
                _ = try right.request(MachMessage(id: Act.silence))
                try expectNoNewDescriptors {
                    var ends: [CInt] = [-1, -1]
                    #expect(pipe(&ends) == 0)
                    let (reading, writing) = (SharedDescriptor(owning: ends[0]), SharedDescriptor(owning: ends[1]))
                    _ = try right.request(MachMessage(id: Act.write, components: [.descriptor(writing)]))
                    let text = try sysRead(reading.rawValue, capacity: 100).map { String(decoding: $0, as: UTF8.self) }
                    #expect(text == "written by \(server.processID)")
                }
            }
        }
    }

    @Test("500 descriptors go in one message, one more is refused before anything is sent")
    func manyDescriptors() async throws {
        try await withFixture { fixture in
            try withServer(at: fixture) { server in
                let right = try fixture.names.lookUp("server")
                let null = SharedDescriptor(owning: open("/dev/null", O_WRONLY | O_CLOEXEC))
                let parts = Array(repeating: MachMessage.Component.descriptor(null), count: MessageLimits.descriptors)
                #expect(try right.request(MachMessage(id: Act.write, components: parts)).bytes == [])
                let error = failure {
                    _ = try right.request(MachMessage(id: Act.write, components: parts + [.descriptor(null)]))
                }
                #expect(error?.code == .tooManyDescriptors)
                #expect(try right.request(MachMessage(id: Act.process)).text == "\(server.processID)")
            }
        }
    }
}
