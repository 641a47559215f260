// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

@Suite("SystemThread", .leakCheck(threadNames: ["swift-thread"])) struct SystemThreadTests {
    private final class Witness: Sendable {
        let destroyed: Recorder<pid_t>
        init(_ destroyed: Recorder<pid_t>) { self.destroyed = destroyed }
        deinit { destroyed.append(sysThreadID()) }
    }

    private static let local = ThreadLocal<Witness>()

    /// The kernel's name of the calling thread.
    private func kernelName() throws -> String {
        let file = try sysOpen("/proc/thread-self/comm", .reading)
        return String(decoding: try sysRead(file.raw, capacity: 64)?.dropLast() ?? [], as: UTF8.self)
    }

    @Test(
        "a thread runs its body once, on a thread of its own, and is gone with its thread-local values after the join")
    func join() throws {
        let (ran, destroyed) = (Recorder<pid_t>(), Recorder<pid_t>())
        let thread = try sysStartThread {
            Self.local.value = Witness(destroyed)
            ran.append(sysThreadID())
        }
        thread.join()
        #expect(ran.count == 1)
        #expect(ran.elements != [sysThreadID()])
        #expect(destroyed.elements == ran.elements)
    }

    @Test("a thread whose value is released unjoined is detached, and goes on")
    func detached() async throws {
        let (mayEnd, destroyed) = (Gate("the end"), Recorder<pid_t>())
        do {
            _ = try sysStartThread {
                Self.local.value = Witness(destroyed)
                mayEnd.wait()
            }
        }
        mayEnd.open()
        _ = await destroyed.waitUntilCount(1)
    }

    @Test("the body's captures are released, also when no thread could be started")
    func released() throws {
        let destroyed = Recorder<pid_t>()
        do {
            let witness = Witness(destroyed)
            try sysStartThread { _ = witness }.join()
        }
        #expect(destroyed.count == 1)
        #if PORT_FAULTS
        #expect(throws: SystemError(EAGAIN)) {
            let witness = Witness(destroyed)
            _ = try SystemCallFaults.with([.init(.clone, .fail(EAGAIN))]) { _ = try sysStartThread { _ = witness } }
        }
        #expect(destroyed.count == 2)
        #endif
    }

    @Test("a stack without a size, and one larger than memory, are refused", arguments: [-1, 0, 100, Int.max / 2])
    func badStack(_ size: Int) {
        #expect(throws: SystemError.self) { _ = try sysStartThread(stackSize: size) {} }
    }

    @Test("the stack has the size that was asked for")
    func stack() throws {
        try sysStartThread(stackSize: 64 << 20) {
            withUnsafeTemporaryAllocation(byteCount: 32 << 20, alignment: 1) { bytes in
                bytes[0] = 1
                bytes[bytes.count - 1] = 1
            }
        }.join()
    }

    @Test("a thread that leaves signals to others blocks those that the process gets, not those that it raises itself")
    func blockedSignals() throws {
        try onNewThread {
            var none = sigset_t()
            sigemptyset(&none)
            pthread_sigmask(SIG_SETMASK, &none, nil)
            try checkBlockedSignals()
        }
    }

    private func checkBlockedSignals() throws {
        let before = blockedHere()
        #expect(before.isEmpty)
        let (inherited, blocked) = (Recorder<Set<CInt>>(), Recorder<Set<CInt>>())
        try sysStartThread { inherited.append(blockedHere()) }.join()
        try sysStartThread(blocksSignals: true) { blocked.append(blockedHere()) }.join()
        #expect(inherited.elements == [before])
        #expect(blockedHere() == before)
        let all = try #require(blocked.elements.first)
        #expect(all.isSuperset(of: [SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGPIPE, SIGPROF]))
        #expect(all.isDisjoint(with: [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS]))
    }

    @Test("the starter's signal mask is as before, also when no thread could be started")
    func restoredSignals() throws {
        #if PORT_FAULTS
        let before = blockedHere()
        #expect(throws: SystemError(EAGAIN)) {
            _ = try SystemCallFaults.with([.init(.clone, .fail(EAGAIN))]) {
                _ = try sysStartThread(blocksSignals: true) {}
            }
        }
        #expect(blockedHere() == before)
        #endif
    }

    @Test(
        "the kernel keeps 15 bytes of a name, whole characters only, without NULs",
        arguments: [
            ("", ""), ("worker", "worker"), ("123456789012345", "123456789012345"),
            ("1234567890123456", "123456789012345"), ("12345678901234\u{e9}", "12345678901234"),
            ("1234567890123\u{e9}", "1234567890123\u{e9}"), ("12345678901234e\u{301}", "12345678901234"),
            ("\u{1F600}\u{1F600}\u{1F600}\u{1F600}", "\u{1F600}\u{1F600}\u{1F600}"), ("a\0b", "ab"),
        ])
    func names(name: String, expected: String) async throws {
        #expect(kernelThreadName(name) == expected)
        let seen = try await onNewThread {
            sysNameThread(name)
            return try kernelName()
        }
        #expect(seen == expected)
    }

    private func blockedHere() -> Set<CInt> {
        var mask = sigset_t()
        pthread_sigmask(SIG_SETMASK, nil, &mask)
        return Set((1..<32).filter { sigismember(&mask, $0) == 1 })
    }
}
