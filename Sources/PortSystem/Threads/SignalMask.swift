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
