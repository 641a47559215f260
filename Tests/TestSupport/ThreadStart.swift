// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortSystem
import Synchronization

/// Starts a thread; the caller joins it, or drops the value to detach it.
package func startThread(_ body: @escaping @Sendable () -> Void) -> SystemThread {
    do {
        return try sysStartThread(body)
    } catch {
        preconditionFailure("A test cannot start a thread: \(error)")
    }
}

/// The result of a thread's closure.
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
