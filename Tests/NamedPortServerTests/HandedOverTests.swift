// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import ContractServices
import Glibc
@testable import MessagePort
@testable import NamedPortServer
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("Named ports that are handed over", .leakCheck(warmingUp: makeSpareDescriptor))
struct HandedOverTests {
    @Test(
        "clients of a service that is handed over again and again get every reply, and none is refused",
        arguments: ["never", "always"])
    func service(rings: String) async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withReadyPeer(["hand-over", fixture.directory, "service"], at: fixture, rings: rings) { old in
                try withReadyPeer(["take-over", fixture.directory, "next"], at: fixture, rings: rings) { new in
                    let (begun, done) = (Counter("replies"), Gate("the end"))
                    let steady = runOnThread { () throws -> [Int32] in
                        let port = try RemoteMessagePort(name: "service", nameServer: fixture.names)
                        return try Self.owners(of: done) { number in
                            defer { begun.increment() }
                            return try port.ask(Act.reverse, number)
                        }
                    }
                    let fresh = runOnThread { () throws -> [Int32] in
                        try Self.owners(of: done) { number in
                            let names = try PortNameServer(directory: fixture.directory)
                            return try RemoteMessagePort(name: "service", nameServer: names).ask(Act.reverse, number)
                        }
                    }
                    begun.waitUntilCount(20)
                    try old.write("hand next\n")
                    try old.expect("handed")
                    try new.expect("arrived as service")
                    let before = begun.value
                    begun.waitUntilCount(before + 20)
                    old.closeInput()
                    _ = try old.waitForExit()
                    begun.waitUntilCount(begun.value + 20)
                    done.open()
                    for owners in [try steady.join(), try fresh.join()] {
                        #expect(owners.drop { $0 == old.processID }.allSatisfy { $0 == new.processID })
                        #expect(owners.last == new.processID)
                    }
                    #expect(try fixture.names.list().first { $0.name == "service" }?.owner == new.processID)
                    new.closeInput()
                    _ = try new.waitForExit()
                    #expect(failure { _ = try fixture.names.lookUp("service") }?.code == .nameUnknown)
                }
            }
        }
    }

    @Test("a name goes along, is the new port's, and is free with it")
    func name() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let old = try LocalMessagePort(name: "a", nameServer: fixture.names) { _, _ in nil }
            try fixture.names.register(old.port, name: "b")
            let carrier = MachPort()
            carrier.setAcceptsReceiveRights(true)
            try fixture.names.register(carrier, name: "carrier")
            let address = try carrier.localPort.address()
            let way = SendRight(try #require(try RightsTable.connect(to: address)))
            try old.handOver(to: way, within: longTimeout)
            #expect(!old.isValid)
            let message = try #require(try carrier.receive(within: longTimeout))
            // Before anything holds them, the names are taken, and lead to the port.
            #expect(message.receiveRights.first?.localPort.receivedNames.count == 2)
            let others = try PortNameServer(directory: fixture.directory)
            #expect(failure { try others.register(carrier, name: "a") }?.code == .nameTaken)
            let new = try LocalMessagePort(takingOver: message, nameServer: others) { _, _ in nil }
            #expect(["a", "b"].contains(new.name))
            for name in ["a", "b"] {
                #expect(try others.lookUp(name).destination.address() == new.port.localPort.address())
            }
            #expect(!fixture.names.unregister("a"))
            #expect(others.unregister("b"))
            #expect(failure { _ = try others.lookUp("b") }?.code == .nameUnknown)
            new.invalidate()
            #expect(failure { _ = try others.lookUp("a") }?.code == .nameUnknown)
            carrier.invalidate()
        }
    }

    @Test("a successor that does not answer gets nothing, and the service goes on")
    func noAnswer() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let killed = ProcessEnd.signalled(SIGKILL)
            try withReadyPeer(["take-over", fixture.directory, "next"], at: fixture, endsAs: killed) { next in
                let service = try LocalMessagePort(name: "service", nameServer: fixture.names) { _, _ in nil }
                let successor = try fixture.names.lookUp("next")
                next.pause()
                let error = failure { try service.handOver(to: successor, within: .milliseconds(200)) }
                #expect(error?.code == .sendTimedOut)
                #expect(service.isValid)
                #expect(try fixture.names.list().contains { $0.name == "service" })
                next.kill()
                service.invalidate()
            }
        }
    }

    @Test("a process of the user may ask for a hand-over only where the owner allows it")
    func asked() async throws {
        try await withFixture(leaving: .anything) { fixture in
            try withReadyPeer(["take-over", fixture.directory, "next"], at: fixture) { next in
                let service = try LocalMessagePort(name: "service", nameServer: fixture.names) { _, _ in nil }
                let worker = try ResidentThread(name: "worker")
                try service.schedule(on: worker.loop)
                let successor = try fixture.names.lookUp("next")
                func ask() throws(PortError) {
                    try fixture.names.askForHandOver(of: "service", to: successor, within: longTimeout)
                }
                #expect(!service.allowsHandOver)
                #expect(failure { try ask() }?.code == .notTransferable)
                service.setAllowsHandOver(true)
                service.setAllowsHandOver(false)
                #expect(failure { try ask() }?.code == .notTransferable)
                #expect(service.isValid)
                let left = Gate("the port's leaving")
                service.setAllowsHandOver(true) { left.open() }
                #expect(service.allowsHandOver)
                try ask()
                left.wait()
                try next.expect("arrived as service")
                #expect(!service.isValid)
                #expect(!service.allowsHandOver)
                #expect(failure { try ask() }?.code == .notTransferable)
                let client = try RemoteMessagePort(name: "service", nameServer: fixture.names)
                #expect(try client.ask(Act.reverse, "x") == "\(next.processID) x")
                worker.end()
            }
        }
    }

    @Test("a port whose names cannot be held stays in the message, and can be taken over later")
    func namesNotHeld() async throws {
        try await withFixture(leaving: .anything) { fixture in
            let old = try LocalMessagePort(name: "service", nameServer: fixture.names) { _, _ in nil }
            let carrier = MachPort()
            carrier.setAcceptsReceiveRights(true)
            let address = try carrier.localPort.address(in: .open(path: fixture.directory))
            let way = SendRight(try #require(try RightsTable.connect(to: address)))
            try old.handOver(to: way, within: longTimeout)
            let message = try #require(try carrier.receive(within: longTimeout))
            let others = try PortNameServer(directory: fixture.directory)
            chmod(fixture.directory, 0o755)
            let error = failure { _ = try LocalMessagePort(takingOver: message, nameServer: others) { _, _ in nil } }
            chmod(fixture.directory, 0o700)
            #expect(error?.code == .directoryUntrusted)
            #expect(message.receiveRights.first?.isValid == true)
            let new = try LocalMessagePort(takingOver: message, nameServer: others) { _, _ in nil }
            #expect(new.name == "service" && new.isValid)
            #expect(try others.lookUp("service").destination.address() == new.port.localPort.address())
            new.invalidate()
            carrier.invalidate()
        }
    }

    @Test("a task that is cancelled when the port has come takes it over", arguments: [false, true])
    func cancelled(isCancelledFirst: Bool) async throws {
        try await withFixture(leaving: .anything) { fixture in
            let old = try LocalMessagePort(name: "service", nameServer: fixture.names) { _, _ in nil }
            let (launcher, thread) = (MachPort(), try ResidentThread(name: "successor"))
            let right = launcher.makeSendRight()
            let others = try PortNameServer(directory: fixture.directory)
            let done = Gate("the take-over")
            let outcome = Mutex<Result<LocalMessagePort, any Error>?>(nil)
            let task = Task(executorPreference: thread.loop) {
                do {
                    let port = try await LocalMessagePort(
                        takingOverFrom: right, nameServer: others, within: longTimeout
                    ) { _, _ in nil }
                    outcome.withLock { $0 = .success(port) }
                } catch {
                    outcome.withLock { $0 = .failure(error) }
                }
                done.open()
            }
            let checkIn = try #require(try launcher.receive(within: longTimeout))
            // As from another process: over a socket.
            let carrier = try #require(checkIn.replyPort?.destination as? LocalPort)
            let address = try carrier.address(in: .open(path: fixture.directory))
            let way = SendRight(try #require(try RightsTable.connect(to: address)))
            // While the successor's thread is busy, another thread of its process takes the port.
            let (busy, free) = (Gate("the successor's work"), Gate("the end of that"))
            thread.loop.perform {
                busy.open()
                free.wait()
            }
            busy.wait()
            if isCancelledFirst { task.cancel() }
            try old.handOver(to: way, within: longTimeout)
            task.cancel()
            free.open()
            done.wait()
            let port = try #require(outcome.withLock { $0 }).get()
            #expect(!old.isValid && port.isValid && port.name == "service")
            #expect(try others.list().map(\.name) == ["service"])
            port.invalidate()
            outcome.withLock { $0 = nil }
            launcher.invalidate()
            thread.end()
        }
    }

    @Test("a message without a receive right is no port to take over")
    func nothing() {
        #expect(failure { _ = try LocalMessagePort(takingOver: MachMessage()) { _, _ in nil } }?.code == .invalidPort)
    }

    /// Asks until the gate is open.
    ///
    /// - Returns: the process that has answered each time.
    private static func owners(of done: Gate, _ ask: (String) throws -> String) throws -> [Int32] {
        var (owners, number): ([Int32], Int) = ([], 0)
        repeat {
            number += 1
            let words = try ask("\(number)").split(separator: " ")
            if words.last != "\(number)" { Issue.record("\(number) was answered with \(words)") }
            owners.append(words.first.flatMap { Int32($0) } ?? 0)
        } while !done.isOpen
        return owners
    }
}

extension ResidentThread {
    /// Ends it, and waits for that.
    func end() {
        stop()
        join()
    }
}
