// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

@testable import MessagePort
import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// A name that no port can have, and why.
struct BadName: Sendable, CustomTestStringConvertible {
    let name: String
    let code: PortError.Code

    init(_ name: String, _ code: PortError.Code) {
        self.name = name
        self.code = code
    }

    var testDescription: String { "\(code), \(name.utf8.count) bytes" }
}

@Suite("Names within a process", .leakCheck(warmingUp: makeSpareDescriptor)) struct NameRegistrationTests {
    @Test("a name gives the port's own right each time, reached in memory")
    func sameRight() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "port")
            let right = try fixture.names.lookUp("port")
            #expect(right == port.makeSendRight())
            #expect(try fixture.names.lookUp("port") == right)
            try right.send(MachMessage(id: 7), within: .zero)
            #expect(port.queueCount == 1)
            port.invalidate()
        }
    }

    @Test("no weak reference to a port exists because it has a name, or has lost it")
    func references() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "port")
            #expect(try fixture.names.lookUp("port") == port.makeSendRight())
            #expect(fixture.names.unregister("port"))
            #expect(!hasSideTable(port.localPort))
            port.invalidate()
        }
    }

    @Test("a port may have several names, and loses all of them at its end")
    func severalNames() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            for name in ["one", "two", "three"] { try fixture.names.register(port, name: name) }
            for name in ["one", "two", "three"] { #expect(try fixture.names.lookUp(name) == port.makeSendRight()) }
            #expect(fixture.names.unregister("two"))
            #expect(failure { _ = try fixture.names.lookUp("two") }?.code == .nameUnknown)
            #expect(try fixture.names.lookUp("three") == port.makeSendRight())
            port.invalidate()
            #expect(try fixture.names.list() == [])
        }
    }

    @Test("a taken name is refused, for the same port too, with this process as its owner")
    func taken() async throws {
        try await withFixture { fixture in
            let (first, second) = (MachPort(), MachPort())
            try fixture.names.register(first, name: "name")
            let others = try PortNameServer(directory: fixture.directory)
            for names in [fixture.names, others] {
                for port in [first, second] {
                    let error = failure { try names.register(port, name: "name") }
                    #expect(error?.code == .nameTaken)
                    #expect(error?.owner == sysProcessID())
                }
            }
            #expect(try fixture.names.lookUp("name") == first.makeSendRight())
            first.invalidate()
        }
    }

    @Test(
        "a bad name has a code of its own, for registering and looking up",
        arguments: [
            BadName("", .nameEmpty), BadName(String(repeating: "n", count: 129), .nameTooLong),
            BadName(String(repeating: "é", count: 65), .nameTooLong), BadName("a\0b", .nameHasNUL),
            BadName("\0", .nameHasNUL),
        ])
    func badNames(bad: BadName) async throws {
        let (name, code) = (bad.name, bad.code)
        try await withFixture { fixture in
            let port = MachPort()
            #expect(failure { try fixture.names.register(port, name: name) }?.code == code)
            #expect(failure { _ = try fixture.names.lookUp(name) }?.code == code)
            #expect(!fixture.names.unregister(name))
            #expect(port.isValid)
        }
    }

    @Test("an unknown name is an error, and so is looking it up again")
    func unknown() async throws {
        try await withFixture { fixture in
            for _ in 0..<2 {
                #expect(failure { _ = try fixture.names.lookUp("nobody") }?.code == .nameUnknown)
            }
            #expect(!fixture.names.unregister("nobody"))
        }
    }

    @Test("any bytes but NUL make a name, and names that look alike are different ones")
    func oddNames() async throws {
        let names = [
            String(repeating: "n", count: 128), String(repeating: "é", count: 64), "a/b/../c", "/", ".", "..",
            ".hidden",
            "line\nfeed\t", "🚢🏴‍☠️", "%2F", "%%", " ", "com.example.port", "\u{E9}", "e\u{301}", "NAME", "name",
            "\u{7F}\u{1}",
        ]
        try await withFixture { fixture in
            let ports = try names.map { name in
                let port = MachPort()
                try fixture.names.register(port, name: name)
                return port
            }
            for (name, port) in zip(names, ports) {
                #expect(try fixture.names.lookUp(name) == port.makeSendRight(), "\(name.debugDescription)")
            }
            let listed = Set(try fixture.names.list().map { Array($0.name.utf8) })
            #expect(listed == Set(names.map { Array($0.utf8) }))
            for port in ports { port.invalidate() }
        }
    }

    @Test("unregistering frees the name at once, and the port goes on")
    func unregister() async throws {
        try await withFixture { fixture in
            let (first, second) = (MachPort(), MachPort())
            try fixture.names.register(first, name: "name")
            let right = try fixture.names.lookUp("name")
            #expect(fixture.names.unregister("name"))
            #expect(!fixture.names.unregister("name"))
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
            try fixture.names.register(second, name: "name")
            #expect(try fixture.names.lookUp("name") == second.makeSendRight())
            try right.send(MachMessage(id: 5), within: .zero)
            #expect(try first.tryReceive()?.id == 5)
            first.invalidate()
            #expect(try fixture.names.lookUp("name") == second.makeSendRight())
            second.invalidate()
        }
    }

    @Test("only the object that registered a name unregisters it")
    func unregisterAnothers() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try fixture.names.register(port, name: "name")
            #expect(try !PortNameServer(directory: fixture.directory).unregister("name"))
            #expect(try fixture.names.lookUp("name") == port.makeSendRight())
            port.invalidate()
        }
    }

    @Test("invalidating frees the name before it returns, 50 times in a row")
    func reuse() async throws {
        try await withFixture { fixture in
            for number in 0..<50 {
                let port = MachPort()
                try fixture.names.register(port, name: "name")
                #expect(try fixture.names.lookUp("name") == port.makeSendRight(), "round \(number)")
                port.invalidate()
            }
        }
    }

    @Test("a client that is notified of a port's end over a socket finds all its names free, 20 times")
    func freeWhenNotified() async throws {
        try await withFixture { fixture in
            let all = (0..<50).map { "name \($0)" }
            try withLoopThread { loop in
                for _ in 0..<20 {
                    let port = MachPort()
                    for name in all { try fixture.names.register(port, name: name) }
                    let right = try fixture.remote(all[0], over: .socket).right
                    let (taken, done) = (Recorder<String>(), Gate("the end's notice"))
                    try right.notifyWhenDead(on: loop) { _ in
                        let heir = MachPort()
                        for name in all where failure({ try fixture.names.register(heir, name: name) }) != nil {
                            taken.append(name)
                        }
                        heir.invalidate()
                        done.open()
                    }
                    port.invalidate()
                    done.wait()
                    #expect(taken.elements == [])
                }
            }
        }
    }

    @Test("a port that is released frees its name")
    func dropped() async throws {
        try await withFixture { fixture in
            var port: MachPort? = MachPort()
            try port.map { port throws(PortError) in try fixture.names.register(port, name: "name") }
            #expect(try fixture.names.list().map(\.name) == ["name"])
            port = nil
            #expect(try fixture.names.list() == [])
            #expect(failure { _ = try fixture.names.lookUp("name") }?.code == .nameUnknown)
        }
    }

    @Test("a name lives as long as its port, not as the object that registered it")
    func nameOutlivesServer() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            try PortNameServer(directory: fixture.directory).register(port, name: "name")
            #expect(try fixture.names.list().map(\.name) == ["name"])
            let error = failure { try fixture.names.register(MachPort(), name: "name") }
            #expect(error?.code == .nameTaken)
            port.invalidate()
            try fixture.names.register(MachPort(), name: "name")
        }
    }

    @Test("an invalid port gets no name")
    func invalidPort() async throws {
        try await withFixture { fixture in
            let port = MachPort()
            port.invalidate()
            let error = failure { try fixture.names.register(port, name: "name") }
            let list = try fixture.names.list()
            #expect(error?.code == .invalidPort)
            #expect(list == [])
        }
    }

    @Test("the list gives names in alphabetical order with their owner")
    func list() async throws {
        try await withFixture { fixture in
            let ports = [MachPort(), MachPort(), MachPort()]
            for (port, name) in zip(ports, ["pear", "apple", "fig"]) { try fixture.names.register(port, name: name) }
            ports[2].invalidate()
            let list = try fixture.names.list()
            #expect(list.map(\.name) == ["apple", "pear"])
            #expect(list.allSatisfy { $0.owner == sysProcessID() })
            ports[0].invalidate()
            ports[1].invalidate()
        }
    }

    @Test("private directories are separate")
    func separate() async throws {
        try await withFixture { fixture in
            let others = try PortNameServer(directory: fixture.scratch.path("others"))
            let (port, other) = (MachPort(), MachPort())
            try fixture.names.register(port, name: "name")
            #expect(failure { _ = try others.lookUp("name") }?.code == .nameUnknown)
            try others.register(other, name: "name")
            #expect(try others.lookUp("name") == other.makeSendRight())
            #expect(try fixture.names.lookUp("name") == port.makeSendRight())
            port.invalidate()
            other.invalidate()
        }
    }

    @Test("of two threads that want a name at once, exactly one gets it", arguments: [true, false])
    func race(throughOneObject: Bool) async throws {
        try await withFixture { fixture in
            let others = throughOneObject ? fixture.names : try PortNameServer(directory: fixture.directory)
            for _ in 0..<100 {
                let start = Gate("the start")
                let threads = [fixture.names, others].map { names in
                    runOnThread {
                        let port = MachPort()
                        start.wait()
                        return (port, failure { try names.register(port, name: "name") })
                    }
                }
                start.open()
                let results = try threads.map { try $0.join() }
                #expect(results.count { $0.1 == nil } == 1)
                #expect(results.compactMap { $0.1?.code } == [.nameTaken])
                for (port, _) in results { port.invalidate() }
            }
        }
    }

    @Test("a port that ends while it is registered leaves the name free")
    func endsMeanwhile() async throws {
        try await withFixture { fixture in
            for _ in 0..<100 {
                let port = MachPort()
                let start = Gate("the start")
                let ender = runOnThread {
                    start.wait()
                    port.invalidate()
                }
                start.open()
                let error = failure { try fixture.names.register(port, name: "name") }
                try ender.join()
                #expect(error == nil || error?.code == .invalidPort)
                #expect(try fixture.names.list() == [])
            }
        }
    }
}
