// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import Synchronization

/// A name that this process holds. Its port keeps it, and frees it at its end.
final class HeldName: Sendable {
    private struct State: ~Copyable {
        var file: LockedFile?
        weak var port: PortCore?
        /// What `PortCore.cancelEnding` needs.
        var ending: Int?
    }

    private let state: Mutex<State>

    /// Has the name end with the port.
    init(_ file: consuming LockedFile, for port: PortCore, whenFreed: @escaping @Sendable (HeldName) -> Void) {
        state = Mutex(State(file: consume file))
        let ending = port.whenDead { [self] in
            remove()
            whenFreed(self)
        }
        state.withLock { state in
            state.port = port
            state.ending = ending
        }
    }

    /// Frees the name.
    func remove() {
        let (port, ending) = state.withLock { ($0.port, $0.ending.take()) }
        let file = state.withLock { $0.file.take() }
        if let file { file.remove() }
        if let ending { port?.cancelEnding(ending) }
    }
}
