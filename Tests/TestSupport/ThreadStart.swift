// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import Foundation
import PortSystem
import Synchronization

/// Starts a thread; the caller joins or detaches it.
package func startThread(_ body: @escaping @Sendable () -> Void) -> pthread_t {
    var thread = pthread_t()
    let start = Unmanaged.passRetained(ThreadStart(body))
    let result = pthread_create(
        &thread, nil,
        { argument in
            guard let argument else { return nil }
            Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }, start.toOpaque())
    precondition(result == 0, "A test cannot start a thread (pthread_create gave \(result)).")
    return thread
}

/// Gives the calling thread a name, cut to the 15 bytes that the kernel keeps.
package func nameThisThread(_ name: String) {
    do {
        let file = try sysOpen("/proc/thread-self/comm", .creating)
        _ = try sysWriteAll(file.raw, Array(name.utf8.prefix(15)))
    } catch {
        preconditionFailure("A test thread cannot be named: \(error)")
    }
}

private final class ThreadStart: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) {
        self.body = body
    }
}

/// What a thread's closure gave.
final class ThreadOutcome<Success: Sendable>: Sendable {
    let ended = ThreadEvent()  // guards itself
    private let result = Mutex<Result<Success, any Error>?>(nil)

    func set(_ result: Result<Success, any Error>) {
        self.result.withLock { $0 = result }
        ended.set()
    }

    func get() throws -> Success {
        guard let result = result.withLock({ $0 }) else {
            preconditionFailure("A thread's result was asked for before it had ended.")
        }
        return try result.get()
    }
}
