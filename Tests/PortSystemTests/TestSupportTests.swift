// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// The tools of the tests are tested too: a leak check that sees nothing would let every leak pass.

import Foundation
import PortSystem
import TestSupport
import Testing

@Suite("TestSupport", .leakCheck) struct TestSupportTests {
    @Test("a descriptor that stays open is noticed")
    func descriptorLeak() throws {
        var leaked: SharedDescriptor?
        try withKnownIssue {
            try expectNoNewDescriptors { leaked = SharedDescriptor(try sysOpen("/dev/null", .reading)) }
        } matching: {
            $0.comments.contains { $0.rawValue.contains("left behind: descriptor") }
        }
        #expect(leaked != nil)
        leaked = nil
    }

    @Test("a foreign descriptor that was closed is noticed")
    func foreignClose() throws {
        let original = try sysOpen("/dev/null", .reading)
        var copy: SharedDescriptor? = SharedDescriptor(try original.duplicate())
        withKnownIssue {
            expectNoNewDescriptors { copy = nil }
        } matching: {
            $0.comments.contains { $0.rawValue.contains("gone, though another's") }
        }
        #expect(copy == nil)
    }

    @Test("a body that closes what it opens passes")
    func noLeak() async throws {
        try expectNoNewDescriptors { _ = try sysPacketSocketPair() }
        try await expectNoNewDescriptors {
            let descriptor = try sysOpen("/dev/null", .reading)
            await Task.yield()
            _ = consume descriptor
        }
    }

    @Test("listing the descriptors waits until dispatch has read the status of its threads")
    func dispatchMonitor() throws {
        let before = openDescriptors()
        var status: SharedDescriptor? = SharedDescriptor(try sysOpen("/proc/\(sysProcessID())/stat", .reading))
        let hasBegun = Gate("the count")
        let counter = runOnThread {
            hasBegun.open()
            return openDescriptors()
        }
        hasBegun.wait()
        for _ in 0..<100 { sched_yield() }
        #expect(status != nil)
        status = nil
        #expect(try counter.join() == before)
    }

    @Test("a thread that was not joined is noticed")
    func threadLeak() async throws {
        let (gate, threads) = (Gate(), Recorder<TestThread<Void>>())
        try await withKnownIssue {
            try await LeakCheck().counting { threads.append(runOnThread(name: "forgotten") { gate.wait() }) }
        } matching: {
            $0.comments.contains { $0.rawValue.contains("forgotten") }
        }
        gate.open()
        for thread in threads.takeAll() { try await thread.join() }
    }

    @Test("a thread that the tested library named and left is noticed")
    func namedThreadLeak() async throws {
        let (gate, threads) = (Gate(), Recorder<TestThread<Void>>())
        let before = ProcessState(threadNames: ["library"])
        threads.append(runOnThread(name: "library-1") { gate.wait() })
        let found = ProcessState(threadNames: ["library"]).differences(from: before)
        #expect(found.contains { $0.hasSuffix("named library-1") })
        gate.open()
        for thread in threads.takeAll() { try await thread.join() }
    }

    @Test("a child process that was not waited for is noticed, running or ended")
    func childLeak() async throws {
        let children = Recorder<ChildProcess>()
        try await withKnownIssue {
            try await LeakCheck().counting { children.append(try ChildProcess("/bin/cat")) }
        } matching: {
            $0.comments.contains { $0.rawValue.contains("child process") }
        }
        for child in children.takeAll() { try await child.waitForExit() }
    }

    @Test("a join returns the thread's value, or throws its error")
    func threads() async throws {
        let (own, other) = (sysThreadID(), runOnThread { sysThreadID() })
        #expect(try await other.join() != own)
        let failing = runOnThread(name: "failing") { throw SystemError(EPERM) }
        await #expect(throws: SystemError(EPERM)) { try await failing.join() }
        await #expect(throws: SystemError(EPERM)) { try await onNewThread { throw SystemError(EPERM) } }
        #expect(try await onNewThread { 7 } == 7)
    }

    @Test("a thread carries its name in the kernel")
    func threadName() throws {
        let thread = runOnThread(name: "a name of more than fifteen bytes") {
            try String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
        }
        #expect(try thread.join() == "a name of more \n")
    }

    @Test("a gate lets every waiter through, before and after it is opened")
    func gate() async throws {
        let (ready, gate) = (Gate("ready"), Gate("the gate"))
        let waiting = (0..<3).map { _ in
            runOnThread {
                ready.open()
                return gate.wait()
            }
        }
        await ready.wait()
        #expect(!gate.isOpen)
        gate.open()
        for thread in waiting { #expect(try await thread.join()) }
        #expect(await gate.wait())
    }

    @Test("a recorder keeps the order and wakes threads that wait for its count")
    func recorder() async throws {
        let recorder = Recorder<Int>("numbers")
        let thread = runOnThread { for number in 0..<100 { recorder.append(number) } }
        #expect(await recorder.waitUntilCount(100) == Array(0..<100))
        try await thread.join()
        #expect(recorder.takeAll().count == 100)
        #expect(recorder.elements.isEmpty)
    }

    @Test("a child's output, errors and exit status are collected")
    func childProcess() async throws {
        let child = try ChildProcess("/bin/sh", ["-c", "cat; echo \"$WORD\" >&2; exit 3"], environment: ["WORD": "no"])
        try child.write("to and fro\n")
        let result = try await child.waitForExit()
        #expect(result == ProcessResult(end: .exited(3), output: "to and fro\n", errors: "no\n"))
        #expect(!child.isRunning)
    }

    @Test("a child that writes more than a pipe holds does not block")
    func childWithMuchOutput() async throws {
        let child = try ChildProcess("/bin/sh", ["-c", "head -c 1000000 /dev/zero | tee /dev/stderr"])
        let result = try await child.waitForExit()
        #expect(result.end == .exited(0))
        #expect(result.output.utf8.count == 1_000_000)
        #expect(result.errors.utf8.count == 1_000_000)
    }

    @Test("a killed child reports its signal, and writing to it gives EPIPE")
    func killedChild() async throws {
        let child = try ChildProcess("/bin/sh", ["-c", "exec cat >/dev/null"])
        child.kill(SIGTERM)
        let text = String(repeating: "x", count: 1_000_000)
        #expect(throws: SystemError(EPIPE)) { try child.write(text) }
        #expect(try await child.waitForExit().end == .signalled(SIGTERM))
    }

    @Test("a program that does not exist cannot be started")
    func missingProgram() {
        #expect(throws: SystemError(ENOENT)) { _ = try ChildProcess("/no/such/program") }
    }

    @Test("a child runs in the directory that it was given, and the directory is gone after its scope")
    func scratchDirectory() throws {
        let path = try withScratchDirectory { directory in
            try directory.write("inside", to: "file")
            let child = try ChildProcess("/bin/cat", ["file"], in: directory.path)
            #expect(try child.waitForExit().output == "inside")
            let opened = try sysOpen(directory.path, .directory)
            let status = try sysStatus(opened.raw)
            #expect(!status.isOpenToOthers)
            return directory.path
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("a socket left in a scratch directory is noticed")
    func leftSocket() throws {
        try withKnownIssue {
            try withScratchDirectory { directory in
                let socket = try sysPacketSocket()
                try sysBind(socket.raw, path: directory.path("left"))
            }
        } matching: {
            $0.comments.contains { $0.rawValue.contains("left") }
        }
    }

    @Test("the generator gives the published numbers for its seed")
    func generator() {
        var generator = SplitMix64(seed: 1_234_567)
        #expect(generator.next() == 6_457_827_717_110_365_317)
        #expect(generator.next() == 3_203_168_211_198_807_973)
    }

    @Test("an issue of a seeded test names the seed", .seeded)
    func seeded() {
        var (first, second) = (Seed.generator(), Seed.generator())
        #expect((0..<10).map { _ in first.next() } == (0..<10).map { _ in second.next() })
    }

    @Test("the products are where tests find them")
    func products() throws {
        #expect(try builtProduct("checkin").hasSuffix("/checkin"))
        #expect(throws: MissingProduct.self) { try builtProduct("no-such-product") }
    }
}
