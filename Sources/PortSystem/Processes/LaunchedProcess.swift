// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A child is watched and signalled through a process descriptor (pidfd_open(2)), which can never refer to another
// process. Where the system refuses those, a thread waits for the child without reaping it (WNOWAIT): the kernel keeps
// the number of a child that was not reaped. Other code in this process may reap it all the same; then the child's
// number refers to no child of ours, or to one that started at another time.

import CPortShims
package import PortCLibrary

/// A child of this process, from its start until it was reaped.
package final class LaunchedProcess: Sendable {
    /// The descriptor that becomes readable when the child ends.
    enum End: Sendable {
        case descriptor(SharedDescriptor)
        /// Signalled by the thread that waits for the child.
        case event(Shared<EventDescriptor>)
    }

    private let id: pid_t  // immutable
    private let end: End  // immutable
    private let start: Duration?  // immutable; where there is no process descriptor, and /proc is there

    init(_ id: pid_t, _ end: End, start: Duration? = nil) {
        self.id = id
        self.end = end
        self.start = start
    }

    /// A descriptor, close-on-exec: readable once the child has ended.
    package var rawValue: CInt {
        switch end {
        case .descriptor(let descriptor): descriptor.rawValue
        case .event(let event): event.value.raw
        }
    }

    /// A descriptor of the process, which may be retained for longer than this.
    ///
    /// - Throws: the system's refusal, where it gives no process descriptors.
    package func openProcess() throws(SystemError) -> SharedDescriptor {
        guard case .descriptor(let descriptor) = end else {
            throw Refusals.processDescriptor.error ?? SystemError(ENOSYS)
        }
        return descriptor
    }

    /// Starts watching a child.
    ///
    /// - Returns: nil when the child has ended and was reaped, by other code or by the kernel, because the program
    ///   ignores SIGCHLD. Its id may be another process's by then.
    /// - Throws: EMFILE, ENFILE; EAGAIN when there is no process descriptor, and the system cannot make a thread.
    package static func watching(child process: pid_t) throws(SystemError) -> LaunchedProcess? {
        do throws(SystemError) {
            do throws(SystemError) {
                let descriptor = SharedDescriptor(try sysOpenProcess(process))
                let launched = LaunchedProcess(process, .descriptor(descriptor))
                _ = try launched.wait(leavesUnreaped: true)
                return launched
            } catch {
                if Refusals.processDescriptor.error == nil { throw error }
            }
            _ = try sysWaitForChild(nil, process, leavesUnreaped: true, blocks: false)
            let event = Shared(try EventDescriptor())
            let start = sysProcessStart(process)
            _ = try sysStartThread(stackSize: 128 << 10, blocksSignals: true) {
                sysNameThread("port worker end")
                _ = try? sysWaitForChild(nil, process, leavesUnreaped: true, blocks: true)
                event.value.signal()
            }
            return LaunchedProcess(process, .event(event), start: start)
        } catch {
            if error.code == ESRCH || error.code == ECHILD { return nil }
            throw error
        }
    }

    /// Sends a signal. For a child that has ended this does nothing, which is no error.
    ///
    /// - Throws: EPERM when the child now runs as another user.
    package func signal(_ signal: CInt) throws(SystemError) {
        do throws(SystemError) {
            guard case .descriptor(let descriptor) = end else { return try signalByNumber(signal) }
            // EPERM is also the error for a child that now runs as another user.
            let isRefusal = { [id] (error: SystemError) in
                error.isRefusal && (error.code != EPERM || (try? sysKill(id, 0)) != nil)
            }
            try Refusals.processSignal.avoid(isRefusal) { () throws(SystemError) in
                _ = try retrying(.pidfd_send_signal) { shim_pidfd_send_signal(descriptor.rawValue, signal) }
            } otherwise: { () throws(SystemError) in
                if try sysPoll(descriptor.rawValue, .readable, until: .distantPast).isEmpty {
                    try signalByNumber(signal)
                }
            }
        } catch {
            if error.code != ESRCH && error.code != ECHILD { throw error }
        }
    }

    private func signalByNumber(_ signal: CInt) throws(SystemError) {
        _ = try sysWaitForChild(nil, id, leavesUnreaped: true, blocks: false)
        if isStillOurs() { try sysKill(id, signal) }
    }

    /// Whether the child of this number is the one that was launched.
    private func isStillOurs() -> Bool {
        guard let start, let found = sysProcessStart(id) else { return true }
        return start == found
    }

    /// Reaps the child if it has ended, without blocking. Succeeds once for a child.
    ///
    /// - Returns: how it ended; nil while it runs.
    package func reap() throws(SystemError) -> ChildEnd? {
        guard isStillOurs() else { return .unknown }
        do throws(SystemError) {
            return try wait(leavesUnreaped: false)
        } catch {
            guard error.code == ECHILD || error.isRefusal else { throw error }
            // Not ours to reap: it ended and other code reaped it, or it is the child of the process that forked us; or
            // the system does not allow it.
            return try sysPoll(rawValue, .readable, until: .distantPast).isEmpty ? nil : .unknown
        }
    }

    private func wait(leavesUnreaped: Bool) throws(SystemError) -> ChildEnd? {
        guard case .descriptor(let descriptor) = end else {
            return try sysWaitForChild(nil, id, leavesUnreaped: leavesUnreaped, blocks: false)
        }
        return try Refusals.processWait.avoid { () throws(SystemError) in
            try sysWaitForChild(descriptor.rawValue, id, leavesUnreaped: leavesUnreaped, blocks: false)
        } otherwise: { () throws(SystemError) in
            if try sysPoll(descriptor.rawValue, .readable, until: .distantPast).isEmpty { return nil }
            return try sysWaitForChild(nil, id, leavesUnreaped: leavesUnreaped, blocks: false)
        }
    }
}

/// Sends a signal to a process by its number; signal zero only checks whether the process exists.
package func sysKill(_ process: pid_t, _ signal: CInt) throws(SystemError) {
    _ = try retrying(.kill) { kill(process, signal) }
}

/// Opens a process descriptor, unless the system has refused them.
///
/// - Throws: ESRCH; EINVAL or ENOENT for a number of a thread that is no process; EMFILE, ENFILE; the refusal.
func sysOpenProcess(_ process: pid_t) throws(SystemError) -> FileDescriptor {
    // EINVAL is also the error for a thread's number.
    let number = try Refusals.processDescriptor.remember({ $0.isRefusal && ($0.code != EINVAL || isEachInvalid()) }) {
        () throws(SystemError) in
        try retrying(.pidfd_open) { shim_pidfd_open(process) }
    }
    return FileDescriptor(owning: number)
}

/// Whether the system answers EINVAL for this process, too.
private func isEachInvalid() -> Bool {
    do throws(SystemError) {
        _ = FileDescriptor(owning: try retrying(.pidfd_open) { shim_pidfd_open(getpid()) })
        return false
    } catch {
        return error.code == EINVAL
    }
}

/// waitid(2) for one child, by its descriptor or by its number.
///
/// - Parameters:
///   - descriptor: its process descriptor, if there is one.
///   - process: its number.
///   - leavesUnreaped: whether it can be waited for again: it is not reaped.
///   - blocks: whether to wait until it ends.
/// - Returns: how it ended; nil while it runs.
/// - Throws: ECHILD when it is no child, or was reaped.
func sysWaitForChild(
    _ descriptor: CInt?, _ process: pid_t, leavesUnreaped: Bool, blocks: Bool
) throws(SystemError) -> ChildEnd? {
    var (ended, code, status): (CInt, CInt, CInt) = (0, 0, 0)
    _ = try retrying(.waitid) {
        unsafe shim_wait_for_child(descriptor ?? -1, process, leavesUnreaped, blocks, &ended, &code, &status)
    }
    if ended == 0 { return nil }
    return code == SHIM_CLD_EXITED ? .exited(status) : .signalled(status)
}
