// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
import Synchronization

/// A name that this process holds. Its port keeps it, and frees it at its end.
final class HeldName: Sendable {
    private struct State: ~Copyable {
        var file: LockedFile?
        /// Kept until the name is freed, as it is at the port's end at the latest.
        var port: LocalPort?
        /// What `LocalPort.cancelEnding` needs.
        var ending: Int?
    }

    private let state: Mutex<State>
    private let owner: ObjectIdentifier  // immutable; the port, which has the name no longer than it lives
    private let forkCount = sysForkCount()  // immutable

    /// Has the name end with the port.
    init(_ file: consuming LockedFile, for port: LocalPort, whenFreed: @escaping @Sendable (HeldName) -> Void) {
        owner = ObjectIdentifier(port)
        state = Mutex(State(file: consume file))
        let ending = port.whenDead { [self] in
            remove()
            whenFreed(self)
        }
        // A dead port has freed it.
        if let ending { state.withLock { ($0.port, $0.ending) = (port, ending) } }
    }

    /// Whether it is this port's.
    func belongs(to port: LocalPort) -> Bool { owner == ObjectIdentifier(port) }

    /// Whether this is a forked child's copy: the name is its parent's.
    var isInherited: Bool { sysForkCount() != forkCount }

    /// Whether its file can be found: nobody has removed it, or the directory, without the lock.
    var isReachable: Bool { state.withLock { $0.file?.isReachable ?? false } }

    /// Frees the name.
    func remove() {
        let (port, ending) = state.withLock { ($0.port.take(), $0.ending.take()) }
        let file = state.withLock { $0.file.take() }
        if let file { file.remove() }
        if let ending { port?.cancelEnding(ending) }
    }
}
