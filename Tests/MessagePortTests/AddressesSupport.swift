// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

/// A directory of one test, removed with all that is in it when the test releases it.
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

/// A user other than this one.
let otherUser: uid_t = 65534

/// Runs `body` on `count` threads, which all start at the same moment, and waits for them.
func onThreads(_ count: Int, _ body: @escaping @Sendable (_ thread: Int) -> Void) throws {
    let start = StartLine(count)
    let threads = (0..<count).map { thread in
        runOnThread {
            start.wait()
            body(thread)
        }
    }
    for thread in threads { try thread.join() }
}

/// Where threads wait for each other by spinning, so that they leave as nearly together as they can.
final class StartLine: Sendable {
    private let missing: Atomic<Int>

    init(_ count: Int) {
        missing = Atomic(count)
    }

    /// Arrives, and waits for the others.
    func wait() {
        missing.subtract(1, ordering: .acquiringAndReleasing)
        while missing.load(ordering: .acquiring) > 0 { sched_yield() }
    }
}
