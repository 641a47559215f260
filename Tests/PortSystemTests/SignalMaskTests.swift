// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

/// Each test uses a thread of its own, because the mask of another thread would stay changed if the test failed.
@Suite("SignalMask", .leakCheck) struct SignalMaskTests {
    @Test("a signal that comes while signals are blocked waits until the body is done", arguments: [false, true])
    func waits(throwing: Bool) async throws {
        try await onNewThread {
            unblockAll()
            var taken: [Bool] = []
            let result = Result { () throws(SystemError) in
                try withSignalsBlocked { () throws(SystemError) in
                    pthread_kill(pthread_self(), SIGWINCH)  // which is ignored: it is gone once it is not blocked
                    taken = [isPending(SIGWINCH)]
                    if throwing { throw SystemError(EEXIST) }
                }
            }
            taken.append(isPending(SIGWINCH))
            #expect(taken == [true, false])
            #expect(throwing == ((try? result.get()) == nil))
        }
    }

    @Test("without blocking the body runs with the mask that there is")
    func unblocked() async throws {
        try await onNewThread {
            unblockAll()
            try withSignalsBlocked(false) {
                pthread_kill(pthread_self(), SIGWINCH)
                #expect(!isPending(SIGWINCH))
            }
        }
    }
}

/// A thread that a test starts may have the mask of one of dispatch's threads, which blocks all signals.
private func unblockAll() {
    var none = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, nil)
}

private func isPending(_ signal: CInt) -> Bool {
    var pending = sigset_t()
    sigpending(&pending)
    return sigismember(&pending, signal) == 1
}
