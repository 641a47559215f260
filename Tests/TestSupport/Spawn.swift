// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Foundation
import PortSystem

/// Starts a program with descriptors as its standard input, output, error and so on.
func spawn(
    _ program: String, _ arguments: [String], _ environment: [String: String?], in workingDirectory: String?,
    _ standard: [CInt]
) throws -> pid_t {
    var variables = ProcessInfo.processInfo.environment
    for (name, value) in environment { variables[name] = value }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // Copies above the child's numbers, so that none is replaced before it was copied.
    var copies: [CInt] = []
    defer { for copy in copies { close(copy) } }
    for (number, descriptor) in standard.enumerated() {
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, CInt(standard.count))
        guard copy >= 0 else { throw SystemError(errno) }
        copies.append(copy)
        posix_spawn_file_actions_adddup2(&actions, copy, CInt(number))
    }
    // A pool's threads, from which tests run, block signals; a child would inherit that.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    // A child would also ignore the signals that a shell ignores for its background jobs.
    for signal in [SIGPIPE, SIGINT, SIGQUIT, SIGHUP, SIGTERM] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, CShort(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    // Swift does not see the C library's function for changing the directory; env(1) becomes the program.
    let command = workingDirectory.map { ["/usr/bin/env", "-C", $0, program] } ?? [program]
    var process: pid_t = 0
    let result = withCStrings(command + arguments) { arguments in
        withCStrings(variables.map { "\($0.key)=\($0.value)" }) { environment in
            posix_spawn(&process, command[0], &actions, &attributes, arguments, environment)
        }
    }
    guard result == 0 else { throw SystemError(result) }
    return process
}

/// Calls `body` with a list of C strings that ends with nil.
private func withCStrings<Result>(
    _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
    let copies = strings.map { strdup($0) }
    defer { copies.forEach { free($0) } }
    return body(copies + [nil])
}

/// The path of an executable that this package builds. It is beside the test program, whatever the configuration.
package func builtProduct(_ name: String) throws -> String {
    let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    var directory = URL(fileURLWithPath: program).deletingLastPathComponent()
    for candidate in [program] + CommandLine.arguments where candidate.contains(".xctest") {
        let parts = candidate.components(separatedBy: "/")
        guard let index = parts.firstIndex(where: { $0.hasSuffix(".xctest") }) else { continue }
        directory = URL(fileURLWithPath: parts[..<index].joined(separator: "/"))
        break
    }
    let path = directory.appendingPathComponent(name).path
    guard FileManager.default.isExecutableFile(atPath: path) else { throw MissingProduct(path: path) }
    return path
}

/// An executable was not built: a test that runs it must have it among the dependencies of its target.
package struct MissingProduct: Error {
    /// The path at which it should be.
    package var path: String
}
