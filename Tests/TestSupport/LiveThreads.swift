// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

/// The threads that tests started and have not joined yet. Kernel names are not enough: a thread that a pool starts
/// from a test's thread inherits its name.
enum LiveThreads {
    private struct State {
        var next = 1
        var names: [Int: String] = [:]
    }

    private static let state = Mutex(State())

    static func add(_ name: String) -> Int {
        state.withLock { state in
            defer { state.next += 1 }
            state.names[state.next] = name
            return state.next
        }
    }

    static func remove(_ number: Int) {
        _ = state.withLock { $0.names.removeValue(forKey: number) }
    }

    static var current: [Int: String] { state.withLock { $0.names } }
}
