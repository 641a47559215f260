// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import PortSystem

/// The program of a worker process, and what it starts with.
///
/// Nothing is searched for: the path is the program's file. The process gets standard input, output and error, and the
/// descriptor of its bootstrap port, and no other descriptor of this process, whether marked close-on-exec or not.
public struct WorkerProgram: Sendable {
    /// The program's file. A relative path starts at ``directory``.
    public var path: String
    /// What follows the program's name on its command line.
    public var arguments: [String]
    /// What differs from the environment of this process; nil removes a variable.
    public var environment: [String: String?] = [:]
    /// The working directory; nil for that of this process.
    public var directory: String?
    /// Standard input; nil for that of this process.
    public var standardInput: SharedDescriptor?
    /// Standard output; nil for that of this process.
    public var standardOutput: SharedDescriptor?
    /// Standard error; nil for that of this process.
    public var standardError: SharedDescriptor?

    /// Names a program.
    ///
    /// - Parameters:
    ///   - path: the program's file; `/proc/self/exe` is the running program itself.
    ///   - arguments: what follows the program's name on its command line.
    public init(_ path: String, _ arguments: [String] = []) {
        self.path = path
        self.arguments = arguments
    }
}
