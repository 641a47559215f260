// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CBareCalls
import Glibc

/// A child that plays the other side of a bare socket.
final class BareChild {
    /// This side's end.
    let socket: Int32
    private let process: pid_t

    convenience init(_ kind: bare_socket_kind, _ part: Child.Part, _ arguments: [Int], at processor: Processor = .any)
        throws
    {
        try self.init(kind, part, texts: arguments.map(String.init), at: processor)
    }

    init(_ kind: bare_socket_kind, _ part: Child.Part, texts: [String], at processor: Processor = .any) throws {
        var ends: [Int32] = [-1, -1]
        guard bare_socket_pair(kind, &ends) == 0 else { throw BenchmarkFailure("no socket: \(errno)") }
        defer { close(ends[1]) }
        socket = ends[0]
        process = try Self.spawn(Child.arguments(part, texts, at: processor), handing: ends[1])
    }

    /// Starts this program once more.
    static func spawn(_ arguments: [String], handing descriptor: Int32? = nil) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let descriptor { posix_spawn_file_actions_adddup2(&actions, descriptor, Child.socket) }
        var process: pid_t = 0
        let code = withArguments(arguments) { posix_spawn(&process, "/proc/self/exe", &actions, nil, $0, environ) }
        if code != 0 { throw BenchmarkFailure("no child: \(code)") }
        return process
    }

    /// Calls `body` with a list as `main` gets it.
    static func withArguments<Success>(
        _ arguments: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Success
    ) -> Success {
        let list = (["portbench"] + arguments).map { strdup($0) }
        defer { for text in list { free(text) } }
        return body(list + [nil])
    }

    /// Returns how it ended: 0 when it was without a failure.
    @discardableResult static func wait(for process: pid_t) -> Int32 {
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// Ends a child that does not wait for its socket.
    func kill() {
        Glibc.kill(process, SIGKILL)
        end()
    }

    /// Closes the socket, which ends the child.
    func end() {
        close(socket)
        Self.wait(for: process)
    }
}
