// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import PortSystem
import Synchronization

@testable import MessagePort

/// A directory of one test, removed with all that is in it when the test lets go.
final class AddressScratch: Sendable {
    let path: String

    init() throws {
        path = "/tmp/port-addresses-\(EndpointFileName.makeID())"
        _ = try sysMakeDirectory(path)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A path in the directory.
    func path(_ name: String) -> String { path + "/" + name }

    /// Makes a regular file.
    func makeFile(_ name: String, mode: mode_t = 0o600, _ contents: [UInt8] = []) throws {
        let file = try sysOpen(path(name), .creating)
        try sysWriteAll(file.raw, contents)
        chmod(path(name), mode)
    }
}

/// Whether this process may give files to other users.
var isRoot: Bool { sysUserID() == 0 }

/// A user who is not this one.
let otherUser: uid_t = 65534

/// How many descriptors this process has open, and the one with which it looks.
func openDescriptorCount() -> Int {
    (try? sysList("/proc/self/fd").count) ?? -1
}

/// Runs `body` on so many threads, which all set out at the same moment, and waits for them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (_ thread: Int) -> Void) {
    let start = StartLine(count)
    let done = DispatchGroup()
    for thread in 0..<count {
        done.enter()
        Thread.detachNewThread {
            start.wait()
            body(thread)
            done.leave()
        }
    }
    done.wait()
}

/// Where threads wait for each other, by turning, so that they leave as nearly together as they can.
final class StartLine: Sendable {
    private let missing: Atomic<Int>

    init(_ count: Int) {
        missing = Atomic(count)
    }

    /// Whether all threads have come.
    var isOpen: Bool { missing.load(ordering: .acquiring) <= 0 }

    /// Comes, and waits for the others.
    func wait() {
        missing.subtract(1, ordering: .acquiringAndReleasing)
        while !isOpen { sched_yield() }
    }
}

/// The error that `body` throws, nil when it throws none.
func portError(_ body: () throws(PortError) -> Void) -> PortError? {
    do throws(PortError) {
        try body()
        return nil
    } catch {
        return error
    }
}
