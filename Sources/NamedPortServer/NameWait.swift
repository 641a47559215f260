// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
import Synchronization

/// A wait for one name: whether to look again, and the look.
final class NameWait: Sendable {
    private struct State: ~Copyable {
        var watch: NameDirectoryWatch
        var mustLook = true
    }

    private let name: PortName  // immutable
    private let file: String  // immutable
    private let server: PortNameServer  // immutable
    /// The descriptor to wait on: readable while something may have changed.
    let raw: CInt  // immutable; the watch's, which lives as long as this object
    private let state: Mutex<State>

    /// Begins to watch.
    ///
    /// - Throws: as `NameDirectoryWatch.begin`.
    init(for name: PortName, in server: PortNameServer) throws(PortError) {
        self.name = name
        file = name.fileName
        self.server = server
        let watch = try NameDirectoryWatch.begin(at: try server.openDirectory().path)
        raw = watch.raw
        state = Mutex(State(watch: watch))
    }

    /// Looks, if anything has changed since the last look. Never waits.
    func look() throws(PortError) -> SendRight? {
        let result = state.withLock { state -> Result<Bool, PortError> in
            do throws(PortError) {
                let mustLook = try state.watch.changes().concerns(file) || state.mustLook
                state.mustLook = false
                // Looking a name up may make the directory: that is not for somebody who waits for it.
                return .success(mustLook && state.watch.names != nil)
            } catch {
                return .failure(error)
            }
        }
        return try result.get() ? server.find(name) : nil
    }
}

extension NameDirectoryWatch.Changes {
    fileprivate func concerns(_ file: String) -> Bool {
        switch self {
        case .files(let files): files.contains(file)
        case .everything: true
        }
    }
}
