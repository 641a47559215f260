// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import RunLoopCore
import TestSupport
import Testing

@Suite(.leakCheck(threadNames: ["resident"])) struct ResidentThreadTests {
    @Test(
        "S20: a resident thread stays while nothing is there, executes tasks in order, and is gone after stop and join")
    func tasks() throws {
        let (seen, threads) = (Recorder<Int>(), Recorder<pid_t>())
        let thread = try ResidentThread(name: "resident")
        for number in 0..<100 {
            try thread.perform {
                seen.append(number)
                threads.append(sysThreadID())
            }
        }
        seen.waitUntilCount(100)
        while !thread.loop.isWaiting { sched_yield() }
        try thread.perform { seen.append(100) }
        #expect(!thread.join(within: .zero))
        thread.stop()
        #expect(thread.join())
        #expect(seen.elements == Array(0...100))
        #expect(Set(threads.elements).count == 1)
        #expect(threads.elements[0] != sysThreadID())
        #expect(thread.loop.hasEnded)
    }

    @Test("S20: its loop is known, and runs, when the initializer returns")
    func loop() throws {
        let thread = try ResidentThread(name: "resident")
        let (loops, done) = (Recorder<ThreadRunLoop>(), Gate("the block"))
        #expect(!thread.isCurrent && !thread.loop.isCurrent && !thread.loop.hasEnded)
        thread.loop.perform {
            loops.append(.current)
            #expect(thread.isCurrent)
            #expect(thread.loop.currentMode == .default)
            done.open()
        }
        done.wait()
        #expect(loops.elements == [thread.loop])
        thread.stop()
        thread.join()
    }

    @Test(
        "the kernel shows the beginning of its name, the object has all of it",
        arguments: [
            ("resident", "resident"), ("resident-caf\u{e9}-au-lait", "resident-caf\u{e9}-"),
            ("resident-12345\u{e9}", "resident-12345"),
        ])
    func name(name: String, shown: String) throws {
        let thread = try ResidentThread(name: name)
        let file = try sysOpen("/proc/self/task/\(thread.loop.threadID)/comm", .reading)
        #expect(String(decoding: try sysRead(file.raw, capacity: 64)?.dropLast() ?? [], as: UTF8.self) == shown)
        #expect(thread.name == name)
        thread.stop()
        thread.join()
    }

    @Test("a task that throws ends nothing: its error goes to the handler, on the thread")
    func throwing() throws {
        let (errors, onThread, after) = (Recorder<String>(), Recorder<Bool>(), Gate("the task after"))
        let loop = Recorder<ThreadRunLoop>()
        let thread = try ResidentThread(name: "resident") { error in
            errors.append("\(error)")
            onThread.append(loop.elements.first?.isCurrent ?? false)
        }
        loop.append(thread.loop)
        try thread.perform { throw SystemError(EPERM) }
        try thread.perform { throw RunLoopError(.timedOut) }
        try thread.perform { after.open() }
        after.wait()
        #expect(errors.elements == ["\(SystemError(EPERM))", "\(RunLoopError(.timedOut))"])
        #expect(onThread.elements == [true, true])
        thread.stop()
        thread.join()
    }

    @Test("errors are dropped when there is no handler")
    func dropped() throws {
        let (thread, after) = (try ResidentThread(name: "resident"), Gate("the task after"))
        try thread.perform { throw SystemError(EPERM) }
        try thread.perform { after.open() }
        after.wait()
        thread.stop()
        thread.join()
    }

    @Test("neither a stop of its loop nor removing everything ends it")
    func stays() throws {
        let (thread, runs) = (try ResidentThread(name: "resident"), Recorder<RunLoopActivity>("runs"))
        let observer = RunLoopObserver(activities: [.entry, .exit]) { _, activity in runs.append(activity) }
        let source = idleSource()
        while !thread.loop.isWaiting { sched_yield() }
        thread.loop.add(observer, to: .common)
        thread.loop.add(source)
        for round in 1...3 {
            thread.loop.stop()
            runs.waitUntilCount(2 * round)
        }
        source.invalidate()
        observer.invalidate()
        let done = Gate("the task after")
        try thread.perform { done.open() }
        done.wait()
        #expect(runs.elements.prefix(6) == [.exit, .entry, .exit, .entry, .exit, .entry])
        thread.stop()
        thread.join()
    }

    @Test("it leaves the process's signals to other threads, and its starter's mask as it was")
    func signals() throws {
        let (before, blocked, after) = try onNewThread {
            var mask = sigset_t()
            sigemptyset(&mask)
            sigaddset(&mask, SIGUSR2)
            sigaddset(&mask, SIGBUS)
            pthread_sigmask(SIG_SETMASK, &mask, nil)
            let before = blockedSignals()
            let thread = try ResidentThread(name: "resident")
            let blocked = try thread.performAndWait(within: Watchdog.longTimeout) { blockedSignals() }
            thread.stop()
            thread.join()
            return (before, blocked, blockedSignals())
        }
        #expect(before == [SIGUSR2, SIGBUS] && after == before)
        #expect(blocked.isSuperset(of: [SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM]))
        #expect(blocked.isDisjoint(with: [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT]))
    }

    @Test("a stack that the system does not give is an error")
    func stack() throws {
        #expect(throws: SystemError(EINVAL)) { _ = try ResidentThread(name: "resident", stackSize: 1) }
        let thread = try ResidentThread(name: "resident", stackSize: 256 << 10)
        thread.stop()
        thread.join()
    }

    #if PORT_FAULTS
    @Test("when the system gives no thread the initializer throws, and nothing is left")
    func noThread() {
        #expect(throws: SystemError(EAGAIN)) {
            _ = try SystemCallFaults.with([.init(.clone, .fail(EAGAIN))]) { _ = try ResidentThread(name: "resident") }
        }
    }
    #endif
}

/// The signals that the calling thread blocks.
private func blockedSignals() -> Set<CInt> {
    var mask = sigset_t()
    pthread_sigmask(SIG_SETMASK, nil, &mask)
    return Set((1..<32).filter { sigismember(&mask, $0) == 1 })
}
