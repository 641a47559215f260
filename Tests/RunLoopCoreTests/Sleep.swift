// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import PortSystem
import TestSupport
import Testing

@testable import RunLoopCore

/// What a loop sleeps on.
enum Sleep: CaseIterable, Sendable {
    /// A word in memory: the loop watches no descriptor.
    case word
    /// Descriptors, with a wake-up descriptor of this kind among them.
    case eventfd, pipe

    static let onDescriptors: [Sleep] = [.eventfd, .pipe]
}

/// Runs a closure on a thread of its own, with that thread's loop, which sleeps on `sleep`: for descriptors it gets a
/// source in the mode whose descriptor is never ready. A mode that loses the source still sleeps on descriptors.
///
/// When another thread is to end a sleep (`isNotified`), checks that one did, in that way; otherwise that none did.
func onLoop(
    sleepingOn sleep: Sleep, in mode: RunLoopMode = .default, leavesSource: Bool = true, isNotified: Bool = true,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable (ThreadRunLoop) throws -> Void
) async throws {
    try await onLoop(sourceLocation: sourceLocation) { loop in
        let run: () throws -> Void = {
            guard sleep != .word else { return try body(loop) }
            let pipe = try TestPipe(isBlocking: false)
            let source = RunLoopSource(descriptor: pipe.reading.rawValue) { Issue.record("An idle pipe was ready.") }
            loop.add(source, to: mode)
            defer { source.invalidate() }
            if !leavesSource { loop.remove(source, from: mode) }
            try body(loop)
        }
        #if PORT_FAULTS
        let noEventfd = SystemCallFaults.Rule(.eventfd, .fail(ENOSYS), times: .max)
        let (_, calls) = try Refusals.forgetting {
            try SystemCallFaults.counting(with: sleep == .pipe ? [noEventfd] : [], run)
        }
        // The calls of the loop's thread: it makes a wake-up descriptor, and sleeps on the word, or reads the
        // descriptor after a wake-up.
        #expect((calls[.eventfd] != nil) == (sleep != .word), sourceLocation: sourceLocation)
        #expect((calls[.pipe] != nil) == (sleep == .pipe), sourceLocation: sourceLocation)
        #expect((calls[.futex] != nil) == (sleep == .word && isNotified), sourceLocation: sourceLocation)
        if sleep != .word { #expect((calls[.read] != nil) == isNotified, sourceLocation: sourceLocation) }
        #else
        try run()
        #endif
    }
}

/// Shows other threads when a loop sleeps: from then on, and not before, new work has to wake it.
final class SleepObserver: Sendable {
    private let loop: ThreadRunLoop  // guards itself
    /// How often the loop had slept before each of its waits.
    private let waits = Recorder<Int>("waits")

    /// Observes a loop. On its thread, before it runs.
    init(_ loop: ThreadRunLoop, in mode: RunLoopMode = .default) {
        self.loop = loop
        let waits = waits
        let observer = RunLoopObserver(activities: .beforeWaiting) { [unowned loop] _, _ in
            waits.append(loop.waitCounts.sleeps)
        }
        loop.add(observer, to: mode)
    }

    /// Blocks until the loop sleeps in one of its waits, the first being 1, or is so near to it that it has to be
    /// woken.
    func wait(for number: Int = 1, sourceLocation: SourceLocation = #_sourceLocation) {
        let seen = waits.waitUntilCount(number, sourceLocation: sourceLocation)
        let deadline = Watchdog.deadline
        while seen.count >= number, loop.waitCounts.sleeps == seen[number - 1] {
            if .now >= deadline { return Watchdog.expired("the loop does not sleep", sourceLocation: sourceLocation) }
            yieldThread()
        }
    }
}
