// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
import Synchronization

/// A name that this process holds. Its port retains it, and frees it when the port ends.
final class HeldName: Sendable {
    private struct State: ~Copyable {
        var file: LockedFile?
        /// Retained until the name is freed, at the port's end at the latest.
        var port: LocalPort?
        /// The number that `LocalPort.cancelEnding` needs.
        var ending: Int?
    }

    private let state: Mutex<State>
    private let owner: ObjectIdentifier  // immutable; the port, which has the name no longer than it lives
    private let forkCount = sysForkCount()  // immutable

    /// Makes the name end with the port.
    init(_ file: consuming LockedFile, for port: LocalPort, whenFreed: @escaping @Sendable (HeldName) -> Void) {
        owner = ObjectIdentifier(port)
        state = Mutex(State(file: consume file))
        let ending = port.whenDead { [self] in
            remove()
            whenFreed(self)
        }
        // If the port is dead already, `whenDead` has freed the name.
        if let ending { state.withLock { ($0.port, $0.ending) = (port, ending) } }
    }

    /// Whether the name belongs to this port.
    func belongs(to port: LocalPort) -> Bool { owner == ObjectIdentifier(port) }

    /// Whether this is a forked child's copy: the name belongs to its parent.
    var isInherited: Bool { sysForkCount() != forkCount }

    /// Whether its file can be found: no process has removed it, or the directory, without the lock.
    var isReachable: Bool { state.withLock { $0.file?.isReachable ?? false } }

    /// Frees the name.
    func remove() {
        let (port, ending) = state.withLock { ($0.port.take(), $0.ending.take()) }
        let file = state.withLock { $0.file.take() }
        if let file { file.remove() }
        if let ending { port?.cancelEnding(ending) }
    }
}
