// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
@testable import MessagePort
@testable import NamedPortServer
import PortSystem
@testable import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite("Names in forked children", .leakCheck(warmingUp: makeSpareDescriptor))
struct NameForkTests {
    @Test(
        "a child has none of its parent's names and remote ports, and the parent is not affected",
        arguments: [false, true])
    func inherited(locksAreHeld: Bool) async {
        await #expect(processExitsWith: .success) { [locksAreHeld = locksAreHeld as Bool] in
            try await withScratchDirectory(leaving: .anything) { scratch in
                try await onNewThread { try ForkedNames(NameFixture(scratch)).run(locksAreHeld: locksAreHeld) }
            }
        }
    }

    @Test("a child's copy of its parent's trace service leaves the service alone")
    func traceService() async {
        await #expect(processExitsWith: .success) {
            try await withScratchDirectory(leaving: .anything) { scratch in
                try await onNewThread {
                    let names = try NameFixture(scratch).names
                    var service: TraceService? = try TraceService.start(tracing: [], nameServer: names)
                    let child = try forking {
                        service?.stop()
                        service = nil
                        return []
                    }
                    #expect(exitStatus(of: child) == 0)
                    #expect(try names.list().map(\.name) == [TraceService.name(of: sysProcessID())])
                    service?.stop()
                }
            }
        }
    }
}

/// Named ports, and the results of their use in a forked child.
private struct ForkedNames: Sendable {
    let names: PortNameServer
    let local: LocalMessagePort
    let remote: RemoteMessagePort
    let observed: RemoteMessagePort
    let calls = Counter("ends that were reported")

    init(_ fixture: NameFixture) throws {
        names = fixture.names
        local = try fixture.local("local")
        remote = try fixture.remote("local", over: .socket)
        observed = try fixture.remote("local", over: .memory)
    }

    func run(locksAreHeld: Bool) throws {
        try observed.setInvalidationHandler { [calls] _ in calls.increment() }
        let worker = try ResidentThread(name: "worker")
        let watch = try names.watch(on: worker.loop) { _ in }
        // Its routine retains the owner of the port.
        let source = local.port.makeSource(0).source
        let (locked, mayUnlock) = (Gate("the locks"), Gate("the fork"))
        let holder = runOnThread {
            guard locksAreHeld else { return locked.open() }
            names.held.withLock { _ in
                local.heldName.withLock { _ in
                    observed.life.withLock { _ in
                        source.state.withLock { _ in
                            worker.loop.state.withLock { _ in
                                locked.open()
                                mayUnlock.wait()
                            }
                        }
                    }
                }
            }
        }
        locked.wait()
        let child = try forking { failures() + failures(watch, source, on: worker.loop) }
        mayUnlock.open()
        try holder.join()
        #expect(exitStatus(of: child) == 0)
        #expect(calls.value == 0)
        #expect(try names.list().map(\.name) == ["local"])
        #expect(remote.isValid)
        #expect(try names.lookUp("local") == local.port.makeSendRight())
        observed.invalidate()
        #expect(calls.value == 1)
        #expect(names.unregister("local"))
        local.invalidate()
        #expect(watch.isValid)
        watch.invalidate()
        worker.stop()
        worker.join()
    }

    /// The calls that did not leave the parent's watch and its source alone.
    private func failures(_ watch: NameWatch, _ source: RunLoopSource, on loop: ThreadRunLoop) -> [String] {
        var failures: [String] = []
        source.routine.didEnter(.default, of: loop)
        source.routine.didLeave(.default, of: loop)
        if source.routine.isReady() { failures.append("the port's source is ready") }
        watch.invalidate()
        if watch.isValid { failures.append("the watch is valid") }
        return failures
    }

    /// The calls that did not report that the name or the port is the parent's.
    private func failures() -> [String] {
        var failures: [String] = []
        func expect(_ name: String, _ body: () throws -> Void) {
            let code = failure(body)?.code
            if code != .forkedProcess { failures.append("\(name): \(code.map { "\($0)" } ?? "no error")") }
        }
        expect("register") { try names.register(local.port, name: "other") }
        expect("check-in") { try names.checkIn(local.port, name: "other") }
        expect("set name") { try local.setName("other") }
        expect("set its own name") { try local.setName("local") }
        expect("give up its name") { try local.setName(nil) }
        if local.name != nil { failures.append("it has a name") }
        if names.unregister("local") { failures.append("the name is unregistered") }
        for remote in [remote, observed] {
            expect("request") { _ = try remote.request(MachMessage()) }
            expect("send") { try remote.send(MachMessage()) }
            expect("invalidation handler") { try remote.setInvalidationHandler { _ in } }
            if remote.isValid { failures.append("a remote port is valid") }
            if remote.hasInvalidationHandler { failures.append("a handler would be called at the end") }
            remote.invalidate()
        }
        if calls.value != 0 { failures.append("the end was reported") }
        return failures
    }
}
