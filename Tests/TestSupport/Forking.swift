// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import Glibc
package import Testing

/// Why no test forks under the thread sanitizer: a fork may come while another thread has one of its runtime's locks, or of
/// the Swift runtime's, which it holds longer; the child then waits for that for ever, and may start no thread.
package let mayFork = dlsym(nil, "__tsan_init") == nil

/// Forks. The child does what is said, which tells what went wrong, and ends; the parent gets its number.
///
/// The child has the forking thread alone, so this is for exit tests, and for code that is ready for it.
package func forking(
    sourceLocation: SourceLocation = #_sourceLocation, _ inChild: () -> [String]
) throws -> pid_t {
    // Swift hides fork(2), for good reasons.
    let symbol = try #require(dlsym(nil, "fork"), sourceLocation: sourceLocation)
    // What the runtime makes once, under locks of its own, is made now, not by another thread at the moment of the fork.
    try #require(["\(symbol)"].map { $0.isEmpty } == [false], sourceLocation: sourceLocation)
    let child = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
    guard child == 0 else { return child }
    var alarms = sigset_t()
    sigemptyset(&alarms)
    sigaddset(&alarms, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alarms, nil)
    alarm(30)  // a child that hangs dies
    let failures = inChild()
    for failure in failures { print("in the child: \(failure)") }
    fflush(nil)
    _exit(failures.isEmpty ? 0 : 1)
}

/// Waits for a child's end.
///
/// - Returns: its status as wait(2) gives it: zero for an exit with zero.
package func exitStatus(of child: pid_t) -> Int32 {
    var status: Int32 = -1
    while waitpid(child, &status, 0) == -1 && errno == EINTR {}
    return status
}
