// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

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
