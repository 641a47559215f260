// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import Synchronization
import TestSupport
import Testing

@Suite(.leakCheck) struct ConditionRunTests {
    private final class Flag: Sendable {
        let isUp = Atomic<Bool>(true)
        func lower() { isUp.store(false, ordering: .sequentiallyConsistent) }
        var value: Bool { isUp.load(ordering: .sequentiallyConsistent) }
    }

    @Test(
        "a run that waits for a condition goes on in an empty mode until another thread ends it",
        arguments: Sleep.allCases)
    func emptyMode(sleep: Sleep) async throws {
        try await onLoop(sleepingOn: sleep, in: "reply", leavesSource: false) { loop in
            let flag = Flag()
            let sleeps = SleepObserver(loop, in: "reply")
            let other = runOnThread {
                sleeps.wait()
                flag.lower()
                loop.wakeUp()
            }
            let result = loop.run(mode: "reply", until: Watchdog.deadline, while: { flag.value })
            #expect(result == .handledSource)
            try other.join()
        }
    }

    @Test("it times out when no thread ends it, and polls once when the deadline is past")
    func deadline() async throws {
        try await onLoop { loop in
            #expect(loop.run(mode: "reply", until: .after(.milliseconds(2)), while: { true }) == .timedOut)
            #expect(loop.run(mode: "reply", until: .distantPast, while: { true }) == .timedOut)
            #expect(loop.run(mode: "reply", until: .distantPast, while: { false }) == .handledSource)
        }
    }

    @Test("a run does not sleep on what its condition adds while it polls for an event: a block, and a timer")
    func conditionAdds() async throws {
        try await onLoop { loop in
            let (flag, asked) = (Flag(), Counter("questions"))
            let result = loop.run(mode: "reply", until: Watchdog.deadline) {
                switch asked.increment() {
                case 2: loop.perform(in: ["reply"]) { asked.increment() }
                // The block has counted as the third.
                case 5: loop.add(RunLoopTimer(after: .zero) { _ in flag.lower() }, to: "reply")
                default: break
                }
                return flag.value
            }
            #expect(result == .handledSource)
        }
    }

    @Test(
        "a wake-up after the last poll before the first sleep, when there is no event descriptor yet, is not lost",
        arguments: [false, true])
    func beforeEventDescriptor(addsDescriptor: Bool) async throws {
        try await onLoop { loop in
            let pipe = try TestPipe(isBlocking: false)
            let asked = Counter("questions")
            let result = loop.run(mode: "reply", until: Watchdog.deadline) {
                if asked.increment() == 2 {
                    loop.wakeUp()
                    if addsDescriptor { loop.add(RunLoopSource(descriptor: pipe.reading.rawValue) {}, to: "reply") }
                }
                return asked.value < 4
            }
            #expect(result == .handledSource)
        }
    }

    @Test("S26: a stop during it is left for the run below it")
    func stop() async throws {
        let trace = Recorder<String>()
        try await onLoop { loop in
            let flag = Flag()
            loop.add(idleSource())
            loop.perform {
                loop.perform(in: ["reply"]) { loop.stop() }
                loop.perform(in: ["reply"]) { loop.perform(in: ["reply"]) { flag.lower() } }
                let result = loop.run(mode: "reply", until: Watchdog.deadline, while: { flag.value })
                trace.append("\(result)")
            }
            trace.append("\(loop.runGuarded())")
        }
        #expect(trace.elements == ["handledSource", "stopped"])
    }

    @Test("S26: a private mode serves the reply's source only")
    func privateMode() async throws {
        let seen = Recorder<String>()
        try await onLoop { loop in
            let other = Mailbox { _ in seen.append("other") }
            let reply = Mailbox { _ in seen.append("reply") }
            loop.add(other.source)
            loop.add(reply.source, to: "reply")
            other.put(1)
            let sender = runOnThread { reply.put(1) }
            let result = loop.run(mode: "reply", until: Watchdog.deadline, while: { seen.count == 0 })
            #expect(result == .handledSource)
            try sender.join()
            #expect(seen.elements == ["reply"])
            #expect(loop.runGuarded(returnAfterSourceHandled: true) == .handledSource)
        }
        #expect(seen.elements == ["reply", "other"])
    }
}
