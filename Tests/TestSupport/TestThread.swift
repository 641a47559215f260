// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// Threads that tests start. A test joins each of them; the leak check reports forgotten ones.
//
// A join blocks. In an async test that would block a thread of the cooperative pool, so the async form of each function
// here waits on a thread of its own and then resumes the test.

import Foundation
import PortSystem
import Synchronization
package import Testing

/// A thread that a test started, and the result of its closure.
package final class TestThread<Success: Sendable>: Sendable {
    private let name: String  // immutable
    private let number: Int  // immutable
    private let outcome: ThreadOutcome<Success>  // guards itself
    private let thread: Mutex<SystemThread?>  // nil once it was joined

    fileprivate init(_ name: String, _ body: @escaping @Sendable () throws -> Success) {
        LeakCheck.expectInForce()
        let outcome = ThreadOutcome<Success>()
        self.name = name
        self.outcome = outcome
        number = LiveThreads.add(name)
        let named = ThreadEvent()
        let started = startThread {
            sysNameThread(name)
            named.set()
            outcome.set(Result { try body() })
        }
        thread = Mutex(started)
        named.wait(until: .distantFuture)  // so that the kernel shows the name from now on
    }

    /// Whether the closure has returned or thrown.
    package var hasEnded: Bool { outcome.ended.wait(until: .distantPast) }

    /// Blocks until the thread is gone.
    ///
    /// - Returns: what the closure returned.
    /// - Throws: what the closure threw, or ``WatchdogExpired``.
    @discardableResult
    package func join(sourceLocation: SourceLocation = #_sourceLocation) throws -> Success {
        guard Watchdog.wait(for: outcome.ended, "thread \(name) did not end", sourceLocation: sourceLocation) else {
            throw WatchdogExpired()
        }
        thread.withLock { thread in
            guard let running = thread.take() else { return }
            running.join()
            LiveThreads.remove(number)
        }
        return try outcome.get()
    }

    /// Suspends until the thread is gone.
    ///
    /// - Returns: what the closure returned.
    /// - Throws: what the closure threw, or ``WatchdogExpired``.
    @discardableResult
    package func join(sourceLocation: SourceLocation = #_sourceLocation) async throws -> Success {
        try await offThePool { [self] in try join(sourceLocation: sourceLocation) }
    }
}

/// A wait was ended by the watchdog; the issue is recorded already.
package struct WatchdogExpired: Error {}

/// Starts a thread; the caller joins it.
package func runOnThread<Success: Sendable>(
    name: String = "test", _ body: @escaping @Sendable () throws -> Success
) -> TestThread<Success> {
    TestThread(name, body)
}

/// Runs a closure on a thread of its own and blocks until that thread is gone.
@discardableResult
package func onNewThread<Success: Sendable>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable () throws -> Success
) throws -> Success {
    try runOnThread(body).join(sourceLocation: sourceLocation)
}

/// Runs a closure on a thread of its own and suspends until that thread is gone.
@discardableResult
package func onNewThread<Success: Sendable>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: @escaping @Sendable () throws -> Success
) async throws -> Success {
    try await runOnThread(body).join(sourceLocation: sourceLocation)
}

/// Runs a closure that blocks, without blocking a thread of the cooperative pool.
///
/// - Throws: what the closure threw.
package func offThePool<Success: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Success
) async throws(Failure) -> Success {
    let result = await withCheckedContinuation { continuation in
        _ = startThread {
            let result: Result<Success, Failure>
            do throws(Failure) {
                result = .success(try body())
            } catch {
                result = .failure(error)
            }
            continuation.resume(returning: result)
        }
    }
    return try result.get()
}
