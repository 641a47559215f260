// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Each system call of the package is made once with forced results. The switch below has no default: a new call must be
// added here, too.

import Glibc
@testable import PortSystem
import TestSupport
import Testing

#if PORT_FAULTS

@Suite("SystemCall", .leakCheck) struct SystemCallTests {
    @Test("an interrupted call is repeated, as often as necessary", arguments: SystemCall.allCases)
    func interrupted(call: SystemCall) throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let exercise = try Exercise(call, in: scratch)
            let (outcome, hits) = try SystemCallFaults.with([.init(call, .fail(EINTR), times: 5)]) {
                try exercise.run()
            }
            #expect(outcome == .done)
            #expect(hits == 5)
        }
    }

    // epoll_wait, futex and shutdown throw nothing: a failure there is a bug. A watch that cannot be removed has gone,
    // and no caller could act on a failed yield.
    @Test(
        "an error number is thrown, and no descriptor is lost",
        arguments: SystemCall.allCases.filter {
            ![.epoll_wait, .futex, .inotify_rm_watch, .sched_yield, .shutdown].contains($0)
        },
        [EMFILE, ENOMEM])
    func failed(call: SystemCall, code: CInt) throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let exercise = try Exercise(call, in: scratch)
            expectNoNewDescriptors {
                #expect(throws: SystemError(code)) {
                    try SystemCallFaults.with([.init(call, .fail(code))]) { _ = try exercise.run() }
                }
            }
            #expect(try exercise.run() == .done)
        }
    }

    @Test("an error number that a file system chooses is thrown, whichever it is")
    func chosenByFileSystem() {
        #expect(throws: SystemError(EFAULT)) {
            _ = try retrying(.connect) { () -> CInt in
                errno = EFAULT
                return -1
            }
        }
    }

    @Test(
        "a call that would block gives a value, not an error",
        arguments: [SystemCall.accept, .connect, .fcntl, .read, .recvmsg, .sendmsg, .sigtimedwait, .write])
    func wouldBlock(call: SystemCall) throws {
        try withScratchDirectory(leaving: .anything) { scratch in
            let exercise = try Exercise(call, in: scratch)
            let (outcome, hits) = try SystemCallFaults.with([.init(call, .fail(EAGAIN))]) { try exercise.run() }
            #expect(outcome == .notNow)
            #expect(hits == 1)
            #expect(try exercise.run() == .done)
        }
    }
}

@Suite("SystemCallFaults", .leakCheck) struct SystemCallFaultsTests {
    private func fails() -> Bool {
        do {
            _ = try sysOpen("/dev/null", .reading)
            return false
        } catch {
            return true
        }
    }

    @Test("a rule skips a number of calls and then applies to a number of them")
    func skipping() {
        let (results, hits) = SystemCallFaults.with([.init(.open, .fail(EIO), times: 2, skipping: 3)]) {
            (0..<7).map { _ in fails() }
        }
        #expect(results == [false, false, false, true, true, false, false])
        #expect(hits == 2)
    }

    @Test("rules apply on their own thread, inside their own scope")
    func scope() async throws {
        let (other, hits) = try SystemCallFaults.with([.init(.open, .fail(EIO), times: 100)]) {
            let thread = runOnThread { [self] in fails() }
            return try thread.join()
        }
        #expect(!other)
        #expect(hits == 0)
        #expect(!fails())
    }

    @Test("an inner scope hides the outer, which applies again afterwards, also after a throw")
    func nesting() {
        let (results, hits) = SystemCallFaults.with([.init(.open, .fail(EIO), times: 100)]) { () -> [Bool] in
            let inner = SystemCallFaults.with([]) { fails() }.result
            #expect(throws: SystemError(EPERM)) {
                try SystemCallFaults.with([]) { throw SystemError(EPERM) }
            }
            return [inner, fails()]
        }
        #expect(results == [false, true])
        #expect(hits == 1)
    }

    @Test("the calls of a closure are counted by kind, those of other threads are not")
    func counting() throws {
        let calls = try SystemCallFaults.counting {
            #expect(!fails())
            #expect(!fails())
            try runOnThread { [self] in _ = fails() }.join()
        }.calls
        #expect(calls == [.open: 2, .clone: 1], "the thread was started here")
    }

    @Test("a rule for one call leaves the others alone")
    func otherCalls() {
        let hits = SystemCallFaults.with([.init(.read, .fail(EIO), times: 100)]) { #expect(!fails()) }.hits
        #expect(hits == 0)
    }
}

#endif
