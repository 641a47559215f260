// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import NamedPortServer
import PortSystem
import TestSupport
import Testing

@Suite("Assumptions of programs: names that change", .ports) struct AssumptionsRenames {
    @Test(
        "A31: a new name is the same port with the same queue, and the old name is free", arguments: Transport.allCases)
    func rename(transport: Transport) async throws {
        try await withFixture { fixture in
            let seen = Recorder<String>("messages")
            let local = try fixture.local("old") { port, message in
                seen.append("\(port.name ?? "") \(message.text)")
                return message.bytes
            }
            let remote = try fixture.remote("old", over: transport)
            try remote.send(MachMessage(text: "before"))
            try local.setName("new")
            #expect(local.name == "new")
            #expect(remote.isValid)
            #expect(failure { _ = try fixture.remote("old", over: transport) }?.code == .nameUnknown)
            let heir = try fixture.local("old")
            try remote.send(MachMessage(text: "after"))
            try fixture.remote("new", over: .memory).send(MachMessage(text: "by its new name"))
            #expect(try fixture.remote("new", over: .memory) == fixture.remote("new", over: .memory))
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(try remote.ask(1, "last") == "last")
                #expect(Set(seen.elements) == ["new before", "new after", "new by its new name", "new last"])
                #expect(seen.elements.first == "new before" || transport == .socket)
            }
            heir.invalidate()
            local.invalidate()
            #expect(try fixture.names.list().isEmpty)
        }
    }

    @Test("A31: a name that is taken, or none at all, leaves the old one; its own changes nothing")
    func refused() async throws {
        try await withFixture { fixture in
            let other = try fixture.local("other")
            let local = try fixture.local()
            // CF would truncate the last name.
            let codes = ["other", "", "a\0b", String(repeating: "x", count: 129)].map { name in
                failure { try local.setName(name) }?.code
            }
            #expect(codes == [.nameTaken, .nameEmpty, .nameHasNUL, .nameTooLong])
            try local.setName("name")
            #expect(local.name == "name")
            #expect(try fixture.names.list().map(\.name) == ["name", "other"])
            #expect(try fixture.remote(over: .memory).right == local.port.makeSendRight())
            local.invalidate()
            #expect(failure { try local.setName("dead") }?.code == .invalidPort)
            #expect(local.name == "name")
            other.invalidate()
        }
    }

    @Test("A31: a name that another process has is taken")
    func taken() async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            try withServer("elsewhere", at: fixture) { server in
                let error = failure { try local.setName("elsewhere") }
                #expect(error?.code == .nameTaken)
                #expect(error?.owner == server.processID)
                #expect(local.name == "name")
            }
            local.invalidate()
        }
    }

    @Test("A31: a name that was unregistered by hand can be set again; another port's is not removed")
    func unregistered() async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            fixture.names.unregister("name")
            try local.setName("name")
            #expect(try fixture.names.list().count == 1)
            fixture.names.unregister("name")
            let heir = try fixture.local()
            try local.setName("mine")
            #expect(try fixture.names.list().map(\.name) == ["mine", "name"])
            #expect(try fixture.remote(over: .memory).right == heir.port.makeSendRight())
            heir.invalidate()
            local.invalidate()
        }
    }

    @Test(
        "A19, A31: a port without a name is served, keeps its messages, and may be named later",
        arguments: Transport.allCases
    )
    func namedLater(transport: Transport) async throws {
        try await withFixture { fixture in
            let local = LocalMessagePort(nameServer: fixture.names) { _, message in message.bytes.reversed() }
            #expect(local.name == nil)
            let right = local.port.makeSendRight()
            try right.send(MachMessage(text: "early"), within: .zero)
            #expect(local.port.queueCount == 1)
            try withLoopThread { loop in
                try local.schedule(on: loop)
                #expect(try right.request(MachMessage(text: "abc")).text == "cba")
                try local.setName("name")
                #expect(try fixture.remote(over: transport).ask(1, "abc") == "cba")
                try local.setName(nil)
                #expect(local.name == nil)
                #expect(failure { _ = try fixture.remote(over: transport) }?.code == .nameUnknown)
                #expect(try right.request(MachMessage(text: "abc")).text == "cba")
                local.invalidate()
            }
        }
    }

    @Test("A31: a name is given up even without a descriptor, and when the directory is open to others")
    func givenUpInNeed() async throws {
        try await withFixture { fixture in
            let local = try fixture.local("old")
            _ = try SystemCallFaults.with([.init(.open, .fail(EMFILE), times: 100)]) { try local.setName(nil) }
            #expect(local.name == nil)
            #expect(try fixture.names.list().isEmpty)
            try local.setName("old")
            chmod(fixture.directory, 0o755)
            try local.setName(nil)
            chmod(fixture.directory, 0o700)
            #expect(local.name == nil)
            #expect(try fixture.names.list().isEmpty)
            #expect(try sysList(fixture.directory + "/names") == [])
            local.invalidate()
        }
    }

    @Test("A31: a rename that is refused at any call leaves the old name, otherwise the new one alone, 100 times")
    func refusedAnywhere() async throws {
        try await withFixture { fixture in
            let local = try fixture.local("old")
            let calls = try SystemCallFaults.counting {
                try local.setName("new")
                try local.setName(nil)
            }.calls
            var hits = 0
            for plan in FaultPlan.all(calls, atLeast: 100) {
                try local.setName("old")
                let (error, hit) = SystemCallFaults.with(plan.rules) { failure { try local.setName("new") } }
                hits += hit
                let name = error == nil ? "new" : "old"
                #expect(local.name == name, "\(plan)")
                #expect(try fixture.names.list().map(\.name) == [name], "\(plan)")
                #expect(try fixture.remote(name, over: .memory).right == local.port.makeSendRight(), "\(plan)")
                let other = error == nil ? "old" : "new"
                #expect(failure { _ = try fixture.names.lookUp(other) }?.code == .nameUnknown, "\(plan)")
                _ = SystemCallFaults.with(plan.rules) { failure { try local.setName(nil) } }
                #expect(local.name == nil)
                #expect(try fixture.names.list().isEmpty, "\(plan)")
            }
            #expect(hits >= 100)
            try local.setName("old")
            try local.setName("new")  // removes what could not be removed before
            local.invalidate()
        }
    }

    @Test("A31: a name whose file or directory was removed can be set again")
    func removedFile() async throws {
        try await withFixture { fixture in
            let local = try fixture.local()
            unlink(try fixture.file("name"))
            try local.setName("name")
            #expect(try fixture.remote(over: .memory).right == local.port.makeSendRight())
            try FileManager.default.removeItem(atPath: fixture.directory)
            _ = try PortNameServer(directory: fixture.directory)
            try local.setName("name")
            #expect(try fixture.remote(over: .memory).right == local.port.makeSendRight())
            #expect(try fixture.remote(over: .socket).right != local.port.makeSendRight())
            local.invalidate()
            #expect(try fixture.names.list().isEmpty)
        }
    }
}
