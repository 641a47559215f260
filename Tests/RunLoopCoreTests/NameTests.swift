// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import TestSupport
import Testing

@testable import RunLoopCore

@Suite(.leakCheck) struct NameTests {
    @Test("items describe themselves with kind, name and number")
    func items() throws {
        let pipe = try TestPipe(isBlocking: false)
        let timer = RunLoopTimer(name: "heart\"beat\n", fireDate: .distantFuture) { _ in }
        #expect(timer.description == "timer \"heart\\\"beat\\n\" #\(timer.id.rawValue)")
        let later = RunLoopTimer(name: "later", after: .seconds(9)) { _ in }
        #expect(later.description == "timer \"later\" #\(later.id.rawValue)")
        let observer = RunLoopObserver(name: "watcher", activities: .all) { _, _ in }
        #expect(observer.description == "observer \"watcher\" #\(observer.id.rawValue)")
        let custom = RunLoopSource(name: "commands") {}
        #expect(custom.description == "custom source \"commands\" #\(custom.id.rawValue)")
        let checked = RunLoopSource(name: "mail", readiness: { false }, perform: {})
        #expect(checked.description == "port-based source \"mail\" #\(checked.id.rawValue)")
        let descriptor = RunLoopSource(name: "pipe", descriptor: pipe.reading.rawValue) {}
        #expect(descriptor.description == "port-based source \"pipe\" #\(descriptor.id.rawValue)")
        #expect([timer.name, observer.name, custom.name] == ["heart\"beat\n", "watcher", "commands"])
    }

    @Test("items without a name describe themselves with kind and number")
    func unnamed() {
        let timer = RunLoopTimer(fireDate: .distantFuture) { _ in }
        let source = RunLoopSource {}
        #expect(timer.name == nil && timer.description == "timer #\(timer.id.rawValue)")
        #expect(source.name == nil && source.description == "custom source #\(source.id.rawValue)")
    }

    @Test("a loop describes itself with its thread")
    func loops() async throws {
        #expect(ThreadRunLoop.main.description == "run loop of the main thread \(sysProcessID())")
        try await onLoop { #expect($0.description == "run loop of thread \(sysThreadID())") }
    }

    @Test("delayed requests, command sources and tasks of a thread are traced with their names")
    func traced() async throws {
        let (tracer, thread) = (RunLoopTracer(), try ResidentThread(name: "named"))
        tracer.attach(to: thread.loop)
        let (isHandled, isDone) = (Gate("the command"), Gate("the delayed request"))
        let source = CommandSource<Int>(name: "orders") { _, _ in isHandled.open() }
        source.add(to: thread.loop)
        #expect(source.send(1) == .accepted)
        await isHandled.wait()
        try thread.perform(name: "first task") {}
        try thread.perform {}
        thread.loop.perform(name: "later", after: .zero) { isDone.open() }
        await isDone.wait()
        thread.stop()
        #expect(await offThePool { thread.join(within: Watchdog.limit) })
        let names = tracer.events.compactMap { event in
            if case .calloutBegin(let callout) = event.kind { callout.name } else { nil }
        }
        #expect(Set(names).isSuperset(of: ["orders", "first task", "thread task", "later"]))
    }

    @Test("a block with a name is called as one without")
    func blocks() async throws {
        let seen = Recorder<Int>()
        try await onLoop { loop in
            loop.perform(in: [.default], name: "one") { seen.append(1) }
            loop.perform(name: "two") { seen.append(2) }
            loop.run(for: .zero)
        }
        #expect(seen.elements == [1, 2])
    }
}
