// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary

// The wrapper for the package's system calls, with the one EINTR policy: a call that was interrupted is repeated.
// (close(2) is the exception: on Linux the descriptor is gone even when EINTR is reported.) Where PORT_FAULTS is
// defined, as in debug builds, a test may force results here: see `SystemCallFaults`.

/// The system calls that the package makes, named as in section 2 of the manual.
package enum SystemCall: String, Sendable, CaseIterable {
    case accept, bind, clone, close_range, connect, dup, epoll_create, epoll_ctl, epoll_wait, eventfd, fallocate
    case fchmod, fchown, fcntl, flock, fstat, ftruncate
    case futex, getsockname, getsockopt, inotify_add_watch, inotify_init, inotify_rm_watch
    case kcmp, kill, link, listen, memfd_create, mkdir, mmap, open, pidfd_open, pidfd_send_signal, pipe, poll
    case read, readdir, readlink, recvmsg, rename, sched_yield, sendmsg, setsockopt, sigtimedwait, socket
    case shutdown, socketpair, statx, symlink, sync_file_range, unlink, vfork, waitid, write
}

/// Makes a system call, and repeats it when it is interrupted.
///
/// - Parameters:
///   - call: the call's name, for the fault seam.
///   - body: makes the call; its value is -1 on failure, with the reason in `errno`.
/// - Returns: the call's result, never -1.
/// - Throws: the error number, except EINTR.
@inline(never)
func retrying<Result: FixedWidthInteger & SignedInteger>(
    _ call: SystemCall, _ body: () -> Result
) throws(SystemError) -> Result {
    while true {
        #if PORT_FAULTS
        if let forced = SystemCallFaults.forcedError(for: call) {
            if forced.code == EINTR { continue }
            throw forced
        }
        #endif
        let (result, code) = (body(), errno)
        if result != -1 { return result }
        // Any other number may be a file system's choice, so none of them traps.
        if code != EINTR { throw SystemError(code) }
    }
}

/// Maps one error number to nil.
///
/// - Parameters:
///   - code: the error number.
///   - body: makes a system call.
/// - Returns: the call's result, or nil for that error.
/// - Throws: every other error number.
@inline(__always)
func unless<Result>(_ code: CInt, _ body: () throws(SystemError) -> Result) throws(SystemError) -> Result? {
    do throws(SystemError) {
        return try body()
    } catch {
        if error.code == code { return nil }
        throw error
    }
}

/// Maps EAGAIN to nil: a system call on a non-blocking descriptor would have had to wait.
func unlessBlocked<Result>(_ body: () throws(SystemError) -> Result) throws(SystemError) -> Result? {
    try unless(EAGAIN, body)
}
