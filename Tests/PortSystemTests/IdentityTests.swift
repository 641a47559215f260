// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
@testable import PortSystem
import TestSupport
import Testing

@Suite("Identity", .leakCheck) struct IdentityTests {
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

    @Test("the overflow id stands for one user only where every user has a number")
    func overflow() {
        func standsForOne(_ id: UInt32, _ map: String?) -> Bool {
            Overflow.standsForOne(id, overflow: 65534) { map }
        }
        let whole = "         0          0 4294967295\n"
        #expect(standsForOne(65534, whole))
        #expect(standsForOne(65534, "0 1 2147483647\n2147483647 2147483648 2147483648\n"))
        for map in [nil, "", "0 100000 65536\n", "0 1000 1\n65534 65534 1\n", "0 0 4294967294\n"] {
            #expect(!standsForOne(65534, map), "\(map ?? "none")")
            #expect(standsForOne(1000, map) && standsForOne(0, map))
        }
        #expect(!standsForOne(.max, whole))
    }

    @Test("this process's user is its own, others are not")
    func ownUser() {
        #expect(sysIsOwnUser(geteuid()))
        #expect(!sysIsOwnUser(geteuid() + 1))
    }

    @Test("a variable that is not set, or empty, is nil")
    func environment() async {
        #expect(sysEnvironment("PORT_TEST_NO_SUCH_VARIABLE") == nil)
        #expect(sysEnvironment("PATH") == ProcessInfo.processInfo.environment["PATH"])
        await #expect(processExitsWith: .success) {
            setenv("PORT_TEST_EMPTY", "", 1)
            #expect(sysEnvironment("PORT_TEST_EMPTY") == nil)
        }
    }
}
