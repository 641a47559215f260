// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Child processes: started with the descriptors that they are to have and no others, watched and signalled through a
// pidfd (pidfd_open(2)), which cannot come to mean another process, and waited for exactly once.

import CPortShims
package import PortCLibrary

/// How a child process ended.
package enum ChildEnd: Hashable, Sendable {
    /// It called `exit`, or returned from `main`, with this status.
    case exited(CInt)
    /// This signal killed it.
    case signalled(CInt)
    /// Somebody else has waited for it, or the kernel did because the program ignores SIGCHLD.
    case unknown
}

/// Starts a program in a child process.
///
/// No signal is blocked or ignored in it, whatever this thread and process do with signals.
///
/// - Parameters:
///   - path: the program's file. A relative path starts at `directory`.
///   - arguments: what follows the program's name.
///   - environment: what differs from this process's environment; nil takes a variable out.
///   - directory: the child's working directory; nil for this process's.
///   - descriptors: which descriptors become 0, 1, 2 and so on in the child; nil for this process's own of that number.
///     All others are closed there, close-on-exec or not.
/// - Returns: the child's process id. It must be waited for.
/// - Throws: ENOENT, EACCES, ENOEXEC and what else `execve(2)` says; EAGAIN and ENOMEM when the system gives no
///   process; EMFILE when there is no descriptor left for a moment's use; EINVAL when an argument holds a NUL.
package func sysSpawn(
    _ path: String, arguments: [String], environment: [String: String?], in directory: String?, descriptors: [CInt?]
) throws(SystemError) -> pid_t {
    let arguments = try CStringList([path] + arguments)
    let environment = try unsafe CStringList(environment: shim_environment(), changing: environment)
    // Out of the way of the child's numbers, so that none is replaced before it was copied.
    var copies: [SharedDescriptor] = []
    var numbers = [CInt](repeating: -1, count: descriptors.count)
    for (number, descriptor) in descriptors.enumerated() {
        guard let descriptor else { continue }
        let copy = SharedDescriptor(
            owning: try retrying(.dup) { shim_dup_cloexec_from(descriptor, CInt(descriptors.count)) })
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

/// A descriptor that stands for a child of this process: readable once it has ended. Close-on-exec.
///
/// - Returns: the descriptor; nil when the child has ended and was waited for, by somebody else or by the kernel,
///   because the program ignores SIGCHLD. Its id may be another process's by then.
/// - Throws: EMFILE, ENFILE; ENOSYS on a kernel before 5.3.
package func sysProcessDescriptor(ofChild process: pid_t) throws(SystemError) -> FileDescriptor? {
    do throws(SystemError) {
        let descriptor = FileDescriptor(owning: try retrying(.pidfd_open) { shim_pidfd_open(process) })
        var (ended, code, status): (CInt, CInt, CInt) = (0, 0, 0)
        _ = try retrying(.waitid) { unsafe shim_pidfd_wait(descriptor.raw, 1, &ended, &code, &status) }
        return descriptor
    } catch {
        if error.code == ESRCH || error.code == ECHILD { return nil }
        throw error
    }
}

/// Sends a signal to the process of a process descriptor. One that has ended is no error.
///
/// - Throws: EPERM when the process has become another user's.
package func sysSignal(_ process: CInt, _ signal: CInt) throws(SystemError) {
    do throws(SystemError) {
        _ = try retrying(.pidfd_send_signal) { shim_pidfd_send_signal(process, signal) }
    } catch {
        if error.code != ESRCH { throw error }
    }
}

/// Waits for a child if it has ended, without blocking, and so lets the kernel forget it. Done once for a child.
///
/// - Parameter process: its process descriptor.
/// - Returns: how it ended; nil while it runs.
/// - Throws: EBADF and EINVAL, which are bugs of the caller.
package func sysReap(_ process: CInt) throws(SystemError) -> ChildEnd? {
    var (ended, code, status): (CInt, CInt, CInt) = (0, 0, 0)
    do throws(SystemError) {
        _ = try retrying(.waitid) { unsafe shim_pidfd_wait(process, 0, &ended, &code, &status) }
    } catch {
        guard error.code == ECHILD else { throw error }
        // Not ours to wait for: it ended and somebody else did, or it is the child of the process that forked us.
        return try sysPoll(process, .readable, until: .distantPast).isEmpty ? nil : .unknown
    }
    if ended == 0 { return nil }
    return code == SHIM_CLD_EXITED ? .exited(status) : .signalled(status)
}

/// Kills a child that has no process descriptor, and waits for it. Does nothing when it has been waited for, by
/// somebody else or by the kernel: its number may be another process's by then.
package func sysKillAndReap(_ process: pid_t) {
    var information = unsafe siginfo_t()
    let isChild = try? retrying(.waitid) {
        unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT)
    }
    guard isChild != nil else { return }
    kill(process, SIGKILL)
    _ = try? retrying(.waitid) { waitpid(process, nil, 0) }
}

/// Makes a descriptor close-on-exec.
package func sysCloseOnExec(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.fcntl) { shim_set_cloexec(descriptor) }
}

/// Whether an open descriptor is a Unix socket of packets.
///
/// - Throws: EBADF when it is not open, ENOTSOCK when it is no socket.
package func sysIsPacketSocket(_ descriptor: CInt) throws(SystemError) -> Bool {
    var kind = [CInt](repeating: -1, count: 2)
    for (index, option) in [SO_DOMAIN, SO_TYPE].enumerated() {
        var length = socklen_t(MemoryLayout<CInt>.size)
        _ = try retrying(.getsockopt) { unsafe getsockopt(descriptor, SOL_SOCKET, option, &kind[index], &length) }
    }
    return kind[0] == AF_UNIX && kind[1] == SHIM_SOCK_SEQPACKET
}
