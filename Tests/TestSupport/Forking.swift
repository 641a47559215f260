// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import Glibc
import PortSystem
package import Testing

/// Whether the thread sanitizer is active.
package let hasThreadSanitizer = dlsym(nil, "__tsan_init") != nil

/// How many times a test does something that it repeats to find a race: this many, or a quarter of it under the thread
/// sanitizer. That finds a race by the order of two accesses, whether or not they met, so it needs few repetitions; and
/// each takes ten times as long there.
package func rounds(_ count: Int) -> Int {
    hasThreadSanitizer ? max(1, count / 4) : count
}

/// Whether the address sanitizer is active. It reads its options from /proc, so they do not reach a process without it, or
/// one that may not read them there.
package let hasAddressSanitizer = dlsym(nil, "__asan_init") != nil

/// Whether one of the two is active.
package let hasSanitizer = hasThreadSanitizer || hasAddressSanitizer

/// Variables for a process in which the address sanitizer cannot search for leaks. It traces the process for that, which
/// a filter, another user, a limit of processes or the lack of /proc prevents.
package let withoutLeakSearch: [String: String?] = ["ASAN_OPTIONS": "detect_leaks=0"]

/// Searches for leaks now, under the address sanitizer, rather than when the process ends. For exit tests only.
package func searchForLeaks() {
    guard let search = dlsym(nil, "__lsan_do_leak_check") else { return }
    unsafeBitCast(search, to: (@convention(c) () -> Void).self)()
}

/// Whether a forked child may start threads: the thread sanitizer's runtime ends one that does.
package let forkedChildMayStartThreads = !hasThreadSanitizer

/// Forks. The child runs the closure, prints the failures that it returns, and ends; the parent gets its number.
///
/// The child has only the forking thread, so this is for exit tests, and for code that is ready for it. It forks at a
/// moment at which all other threads sleep: one that the fork caught in the Swift runtime, making a type's metadata or
/// a witness table, would hold a lock there that no thread unlocks in the child. The forking thread may share no lock
/// with threads that the child starts: for Swift 6.3's Mutex it keeps the thread number that it had in the parent, and
/// a contended one traps.
package func forking(
    sourceLocation: SourceLocation = #_sourceLocation, _ inChild: () -> [String]
) throws -> pid_t {
    let child = try forkInPlace(sourceLocation: sourceLocation)
    guard child == 0 else { return child }
    let failures = inChild()
    for failure in failures { print("in the child: \(failure)") }
    fflush(nil)
    _exit(failures.isEmpty ? 0 : 1)
}

/// As `forking`, but the child returns, too: it gets zero, and must end itself.
package func forkInPlace(sourceLocation: SourceLocation = #_sourceLocation) throws -> pid_t {
    // Swift hides fork(2), for good reasons.
    let symbol = try #require(dlsym(nil, "fork"), sourceLocation: sourceLocation)
    // Makes the runtime do its one-time work, under locks of its own, now, and not on another thread during the fork.
    try #require(["\(symbol)"].map { $0.isEmpty } == [false], sourceLocation: sourceLocation)
    awaitQuiet(sourceLocation)
    let child = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)()
    guard child == 0 else { return child }
    var alarms = sigset_t()
    sigemptyset(&alarms)
    sigaddset(&alarms, SIGALRM)
    pthread_sigmask(SIG_UNBLOCK, &alarms, nil)
    alarm(30)  // a child that hangs dies
    return 0
}

/// Waits until every other thread of the process sleeps, and has not run between two checks of all of them.
private func awaitQuiet(_ sourceLocation: SourceLocation) {
    let own = "\(sysThreadID())"
    let deadline = Watchdog.deadline
    var seen: [String: [String]] = [:]
    while true {
        let threads = directoryEntries("/proc/self/task").filter { $0 != own }
        let now = Dictionary(uniqueKeysWithValues: threads.map { ($0, schedulingLines(ofThread: $0)) })
        if now == seen, now.values.allSatisfy({ $0.first?.contains("S (sleeping)") == true }) { return }
        if .now >= deadline { return Watchdog.expired("all other threads sleep", sourceLocation: sourceLocation) }
        seen = now
        yieldThread()
    }
}

/// The state of a thread, and the counts of its voluntary and involuntary context switches: see proc(5).
private func schedulingLines(ofThread number: String) -> [String] {
    lines("/proc/self/task/\(number)/status").filter { $0.hasPrefix("State:") || $0.contains("ctxt_switches:") }
}

/// Waits for a child's end.
///
/// - Returns: its status as wait(2) gives it: zero for an exit with zero.
package func exitStatus(of child: pid_t) -> Int32 {
    var status: Int32 = -1
    while waitpid(child, &status, 0) == -1 && errno == EINTR {}
    return status
}
