// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import Glibc
@testable import NamedPortServer
import PortSystem
import TestSupport
import Testing

/// Users of the tests, without a name on any machine, and the group that some of them share.
enum Strangers {
    static let service: UInt32 = 70001
    static let client: UInt32 = 70002
    static let otherClient: UInt32 = 70003
    static let outsider: UInt32 = 70004
    static let group: UInt32 = 70000

    /// Whether this process can run the tests' programs as them.
    static var canAct: Bool {
        guard sysUserID() == 0, var path = try? builtProduct("port-test-peer") else { return false }
        while path != "/" {
            guard let status = try? sysStatus(atPath: path), status.mode & 0o001 != 0 else { return false }
            path = (path as NSString).deletingLastPathComponent
        }
        return true
    }

    /// The arguments that make a `port-test-peer` a member of the group.
    static func member(_ user: UInt32) -> [String] { ["as", "\(user):\(group)"] }
}

/// A directory that an owner shares with a group, in a test's scratch directory.
struct SharedFixture: Sendable {
    let scratch: ScratchDirectory
    /// Its path.
    let path: String

    /// The argument for a `port-test-peer`.
    var word: String { "shared:" + path }

    init(_ scratch: ScratchDirectory, mode: mode_t, owner: UInt32) throws {
        self.scratch = scratch
        path = scratch.path("shared")
        try #require(chmod(scratch.path, 0o711) == 0)
        try #require(mkdir(path, 0o700) == 0)
        try #require(chown(path, owner, Strangers.group) == 0)
        try #require(chmod(path, mode) == 0)
    }

    /// Writes the rules, as root.
    func setRules(_ text: String) throws {
        try scratch.write(text, to: "shared/rules")
        try #require(chmod(path + "/rules", 0o644) == 0)
    }

    /// Runs `body` beside a `port-test-peer`, as `withPeer` does.
    func with<Result>(
        _ user: UInt32, _ arguments: [String], rings: String? = nil, endsAs end: ProcessEnd = .exited(0),
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (ChildProcess) throws -> Result
    ) throws -> Result {
        try withPeer(
            Strangers.member(user) + arguments, in: scratch, rings: rings, endsAs: end, sourceLocation: sourceLocation,
            body)
    }

    /// The first line of a `port-test-peer`.
    func first(
        _ user: UInt32, _ arguments: [String], rings: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> String? {
        try with(user, arguments, rings: rings, sourceLocation: sourceLocation) {
            try $0.nextLine(sourceLocation: sourceLocation)
        }
    }

    /// Runs a command of the shell as a member of the group.
    ///
    /// - Returns: whether it succeeded.
    func shell(_ user: UInt32, _ command: String) throws -> Bool {
        let words = Strangers.member(user) + ["exec", "sh", "-c", command]
        return try ChildProcess(builtProduct("port-test-peer"), words).waitForExit().end == .exited(0)
    }
}

/// Runs a test on a thread of its own, with a directory that is shared; for root only.
func withSharedFixture(
    mode: mode_t, owner: UInt32 = 0, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: @escaping @Sendable (SharedFixture) throws -> Void
) async throws {
    try await onNewThread(sourceLocation: sourceLocation) {
        try withScratchDirectory(leaving: .anything, sourceLocation: sourceLocation) { scratch in
            try body(SharedFixture(scratch, mode: mode, owner: owner))
        }
    }
}

/// Whether this process may inspect every other process (CAP_SYS_PTRACE).
func mayTrace() throws -> Bool {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
    let capabilities = line.flatMap { UInt64($0.split(separator: "\t").last ?? "", radix: 16) } ?? 0
    return capabilities & 1 << 19 != 0
}
