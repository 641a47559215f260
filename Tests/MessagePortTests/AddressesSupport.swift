// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
import MessagePort
import PortSystem
import Synchronization
import TestSupport
import Testing

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

/// Runs `body` on so many threads, which all set out at the same moment, and waits for them.
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

/// Where threads wait for each other, by turning, so that they leave as nearly together as they can.
final class StartLine: Sendable {
    private let missing: Atomic<Int>

    init(_ count: Int) {
        missing = Atomic(count)
    }

    /// Comes, and waits for the others.
    func wait() {
        missing.subtract(1, ordering: .acquiringAndReleasing)
        while missing.load(ordering: .acquiring) > 0 { sched_yield() }
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

/// Runs `body` and records an issue when other files or sockets are open after it than before. For exit tests: no other
/// test runs beside it. Event and timer descriptors do not count, as dispatch makes its own at any time.
func expectNoNewFiles(_ location: SourceLocation = #_sourceLocation, _ body: () throws -> Void) rethrows {
    let before = openFiles()
    try body()
    let after = openFiles()
    if after != before {
        Issue.record("\(after.symmetricDifference(before).sorted())", sourceLocation: location)
    }
}

private func openFiles() -> Set<String> {
    let numbers = (try? sysList("/proc/self/fd")) ?? []
    let open = numbers.compactMap { number -> String? in
        let path = "/proc/self/fd/\(number)"
        return (try? FileManager.default.destinationOfSymbolicLink(atPath: path)).map { "\(number) on \($0)" }
    }
    return Set(open.filter { !$0.contains("anon_inode:") })
}
