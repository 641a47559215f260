// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// Runs `body` while the calling thread takes no signal, except those that its own instructions raise (SIGSEGV and the
/// like). Threads that the body starts take none either.
///
/// The thread's mask is as before afterwards. What came meanwhile for the process goes to another thread that takes it,
/// or waits until the body is done.
///
/// - Parameters:
///   - blocks: false to run the body as it is.
///   - body: what is not to be interrupted. Must not wait.
/// - Returns: what the body returned.
/// - Throws: what the body threw.
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

/// Has a signal call a handler from now on, on any thread, in the middle of whatever the thread does. Calls that it interrupts
/// are made again.
///
/// - Parameters:
///   - signal: the signal's number.
///   - handler: gets the number, the signal's `siginfo_t`, and the context that `sigaction(2)` names.
package func sysHandleSignal(
    _ signal: CInt,
    _ handler: @convention(c) (CInt, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> Void
) {
    unsafe shim_handle_signal(signal, handler)
}
