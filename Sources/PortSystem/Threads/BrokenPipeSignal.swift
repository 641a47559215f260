// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// write(2) to a pipe or a stream socket without a reader fails with EPIPE and sends SIGPIPE to the thread, which ends
// the process unless the program handles or ignores the signal. A library must change no handlers of the process. So
// the signal is blocked on the thread meanwhile, and consumed when it was sent.

import PortCLibrary

/// Runs `body` so that a write to a pipe or socket without a reader fails with EPIPE and ends nothing.
///
/// The thread's mask is restored afterwards. A SIGPIPE that was pending for the thread or for the process before the
/// call is still pending after it.
///
/// - Parameter body: writes, and throws the EPIPE that it meets: when it hides the error, the signal is not consumed.
/// - Returns: the body's result.
/// - Throws: the body's error.
package func withoutBrokenPipeSignal<Result>(
    _ body: () throws(SystemError) -> Result
) throws(SystemError) -> Result {
    var (signal, waiting, old) = (brokenPipeSignal(), sigset_t(), sigset_t())
    unsafe pthread_sigmask(SIG_BLOCK, &signal, &old)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &old, nil) }
    unsafe sigpending(&waiting)
    let hasWaited = unsafe sigismember(&waiting, SIGPIPE) == 1
    do throws(SystemError) {
        return try body()
    } catch {
        if error.code == EPIPE, !hasWaited { _ = try sysTakeSignal(SIGPIPE) }
        throw error
    }
}

/// Consumes a signal that is pending for the calling thread, or for the process. The thread must block it, or it would
/// not be pending.
///
/// - Returns: false when it is not pending.
package func sysTakeSignal(_ signal: CInt) throws(SystemError) -> Bool {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, signal)
    var atOnce = timespec()
    return try unlessBlocked { () throws(SystemError) in
        try retrying(.sigtimedwait) { unsafe sigtimedwait(&set, nil, &atOnce) }
    } != nil
}

private func brokenPipeSignal() -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, SIGPIPE)
    return set
}
