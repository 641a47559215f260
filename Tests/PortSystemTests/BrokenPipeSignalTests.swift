// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

/// SIGPIPE ends a process, so a wrapper that lets it through ends the tests. Each test uses a thread of its own,
/// because it changes the mask.
@Suite("BrokenPipeSignal", .leakCheck) struct BrokenPipeSignalTests {
    @Test("a write without a reader fails with EPIPE; no signal is left, and the mask is as before")
    func brokenPipe() async throws {
        try await onNewThread {
            unblock()
            let pipe = try BrokenPipe()
            for _ in 0..<3 {
                #expect(throws: SystemError(EPIPE)) {
                    try withoutBrokenPipeSignal { () throws(SystemError) in try pipe.write() }
                }
                #expect(!isWaiting())
                #expect(!isBlocked())
            }
        }
    }

    @Test("a thread that blocks the signal blocks it afterwards, and has none of ours pending")
    func blockedBefore() async throws {
        try await onNewThread {
            block()
            let pipe = try BrokenPipe()
            #expect(throws: SystemError(EPIPE)) {
                try withoutBrokenPipeSignal { () throws(SystemError) in try pipe.write() }
            }
            #expect(isBlocked())
            #expect(!isWaiting())
        }
    }

    @Test("a signal that was pending before is still pending")
    func waitingBefore() async throws {
        try await onNewThread {
            block()
            pthread_kill(pthread_self(), SIGPIPE)
            let pipe = try BrokenPipe()
            #expect(throws: SystemError(EPIPE)) {
                try withoutBrokenPipeSignal { () throws(SystemError) in try pipe.write() }
            }
            #expect(isWaiting())
            #expect(try sysConsumeSignal(SIGPIPE))
            #expect(try !sysConsumeSignal(SIGPIPE))
        }
    }

    @Test("what the body returns and throws comes through")
    func results() throws {
        #expect(try withoutBrokenPipeSignal { 7 } == 7)
        #expect(throws: SystemError(ENOSPC)) {
            try withoutBrokenPipeSignal { () throws(SystemError) in throw SystemError(ENOSPC) }
        }
    }
}

/// The writing end of a pipe without a reader.
private final class BrokenPipe {
    private let writing: SharedDescriptor

    init() throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError(errno) }
        sysClose(ends[0])
        writing = SharedDescriptor(owning: ends[1])
    }

    func write() throws(SystemError) {
        _ = try sysWrite(writing.rawValue, [1])
    }
}

private func onlyBrokenPipe() -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGPIPE)
    return set
}

private func block() {
    var set = onlyBrokenPipe()
    pthread_sigmask(SIG_BLOCK, &set, nil)
}

private func unblock() {
    var set = onlyBrokenPipe()
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
}

private func isBlocked() -> Bool {
    var set = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &set)
    return sigismember(&set, SIGPIPE) == 1
}

private func isWaiting() -> Bool {
    var set = sigset_t()
    sigpending(&set)
    return sigismember(&set, SIGPIPE) == 1
}
