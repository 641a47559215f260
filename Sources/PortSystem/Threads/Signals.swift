// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// Runs `body` while the calling thread receives no signals, except those that its own instructions raise (SIGSEGV and
/// the like). Threads that the body starts receive none either.
///
/// The thread's mask is restored afterwards. A signal that arrives for the process meanwhile goes to another thread
/// that does not block it, or is pending until the body is done.
///
/// - Parameters:
///   - blocks: false to run the body unchanged.
///   - body: the code that must not be interrupted. Must not wait.
/// - Returns: the body's result.
/// - Throws: the body's error.
package func withSignalsBlocked<Result: ~Copyable>(
    _ blocks: Bool = true, _ body: () throws(SystemError) -> Result
) throws(SystemError) -> Result {
    guard blocks else { return try body() }
    var (mask, old) = (sigset_t(), sigset_t())
    unsafe sigfillset(&mask)
    for signal in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP] { unsafe sigdelset(&mask, signal) }
    unsafe pthread_sigmask(SIG_SETMASK, &mask, &old)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &old, nil) }
    return try body()
}

/// Makes a signal call a handler from now on, on any thread, in the middle of whatever the thread does. System calls
/// that it interrupts are restarted.
///
/// - Parameters:
///   - signal: the signal's number.
///   - handler: receives the number, the signal's `siginfo_t`, and the context that `sigaction(2)` describes.
package func sysHandleSignal(
    _ signal: CInt,
    _ handler: @convention(c) (CInt, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void
) {
    unsafe shim_handle_signal(signal, handler)
}

// write(2) to a pipe or a stream socket without a reader fails with EPIPE and sends SIGPIPE to the thread, which ends
// the process unless the program handles or ignores the signal. A library must change no handlers of the process. So
// the signal is blocked on the thread meanwhile, and consumed when it was sent.

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
    var (signal, waiting, old) = (signalSet(SIGPIPE), sigset_t(), sigset_t())
    unsafe pthread_sigmask(SIG_BLOCK, &signal, &old)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &old, nil) }
    unsafe sigpending(&waiting)
    let hasWaited = unsafe sigismember(&waiting, SIGPIPE) == 1
    do throws(SystemError) {
        return try body()
    } catch {
        if error.code == EPIPE, !hasWaited { _ = try sysConsumeSignal(SIGPIPE) }
        throw error
    }
}

/// Consumes a signal that is pending for the calling thread, or for the process. The thread must block it, or it would
/// not be pending.
///
/// - Returns: false when it is not pending.
package func sysConsumeSignal(_ signal: CInt) throws(SystemError) -> Bool {
    var (set, atOnce) = (signalSet(signal), timespec())
    return try unlessBlocked { () throws(SystemError) in
        try retrying(.sigtimedwait) { unsafe sigtimedwait(&set, nil, &atOnce) }
    } != nil
}

private func signalSet(_ signal: CInt) -> sigset_t {
    var set = sigset_t()
    unsafe sigemptyset(&set)
    unsafe sigaddset(&set, signal)
    return set
}
