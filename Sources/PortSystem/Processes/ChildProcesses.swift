// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Child processes, started with exactly the descriptors that are passed to them. `LaunchedProcess` watches them.

import CPortShims
package import PortCLibrary

/// How a child process ended.
package enum ChildEnd: Hashable, Sendable {
    /// It called `exit`, or returned from `main`, with this status.
    case exited(CInt)
    /// This signal killed it.
    case signalled(CInt)
    /// Other code has waited for it, or the kernel reaped it because the program ignores SIGCHLD.
    case unknown
}

/// Starts a program in a child process.
///
/// No signal is blocked or ignored in it, regardless of this thread's and this process's settings.
///
/// - Parameters:
///   - path: the program's file. A relative path starts at `directory`.
///   - arguments: the arguments after the program's name.
///   - environment: changes to this process's environment; nil removes a variable.
///   - directory: the child's working directory; nil for this process's.
///   - descriptors: which descriptors become 0, 1, 2 and so on in the child; nil for this process's own of that number.
///     All others are closed there, close-on-exec or not.
/// - Returns: the child's process id. It must be waited for.
/// - Throws: ENOENT, EACCES, ENOEXEC and the other errors of `execve(2)`; EAGAIN and ENOMEM when the system cannot make
///   a process; EMFILE when there is no descriptor left for temporary use; EINVAL when an argument contains a NUL.
package func sysSpawn(
    _ path: String, arguments: [String], environment: [String: String?], in directory: String?, descriptors: [CInt?]
) throws(SystemError) -> pid_t {
    let arguments = try CStringList([path] + arguments)
    let environment = try unsafe CStringList(environment: shim_environment(), changing: environment)
    // Copies above the child's numbers, so that none is replaced before it was copied.
    var copies: [SharedDescriptor] = []
    var numbers = [CInt](repeating: -1, count: descriptors.count)
    for (number, descriptor) in descriptors.enumerated() {
        guard let descriptor else { continue }
        let copy = SharedDescriptor(
            owning: try retrying(.dup) { shim_dup_cloexec(descriptor, CInt(descriptors.count)) })
        copies.append(copy)
        numbers[number] = copy.rawValue
    }
    if let directory, directory.utf8.contains(0) { throw SystemError(EINVAL) }
    defer { withExtendedLifetime(copies) {} }
    return try retrying(.vfork) {
        unsafe shim_spawn(
            arguments.pointers[0], arguments.pointers, environment.pointers, directory, numbers, CInt(numbers.count))
    }
}

/// Kills a child that is not watched, and waits for it. Does nothing when it was already waited for, by other code or
/// by the kernel: its number may be another process's by then.
package func sysKillAndReap(_ process: pid_t) {
    var information = unsafe siginfo_t()
    do throws(SystemError) {
        _ = try retrying(.waitid) { unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT) }
    } catch {
        if error.code == ECHILD { return }
    }
    // A child that now runs as another user would make this wait until it ends.
    guard kill(process, SIGKILL) == 0 else { return }
    _ = try? retrying(.waitid) { waitpid(process, nil, 0) }
}
