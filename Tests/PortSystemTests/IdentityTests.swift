// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem
import TestSupport
import Testing

@Suite("Identity", .census) struct IdentityTests {
    @Test("the process, user and group are those that the C library knows")
    func process() {
        #expect(sysProcessID() == getpid())
        #expect(sysUserID() == geteuid())
        #expect(sysGroupID() == getegid())
    }

    @Test("each thread has an id of its own, under which the kernel lists it")
    func thread() async throws {
        let (ready, go) = (Recorder<pid_t>(), Gate("the threads' end"))
        let threads = (0..<2).map { _ in
            runOnThread {
                ready.append(sysThreadID())
                go.wait()
            }
        }
        let ids = await ready.waitUntilCount(2)
        #expect(Set(ids).count == 2)
        for id in ids { #expect(FileManager.default.fileExists(atPath: "/proc/self/task/\(id)")) }
        go.open()
        for thread in threads { try await thread.join() }
    }

    @Test("a variable that is not there, or empty, is nil")
    func environment() async {
        #expect(sysEnvironment("PORT_TEST_NO_SUCH_VARIABLE") == nil)
        #expect(sysEnvironment("PATH") == ProcessInfo.processInfo.environment["PATH"])
        await #expect(processExitsWith: .success) {
            setenv("PORT_TEST_EMPTY", "", 1)
            #expect(sysEnvironment("PORT_TEST_EMPTY") == nil)
        }
    }
}
