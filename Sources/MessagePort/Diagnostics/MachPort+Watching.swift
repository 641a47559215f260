// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Synchronization

extension MachPort {
    /// Whether other processes of the same user may watch this port's messages; initially they may not.
    public var allowsWatching: Bool {
        core.isInherited ? false : core.state.withLock { $0.extras.allowsWatching }
    }

    /// Sets whether other processes of the same user may watch this port's messages, for example with `portctl watch`.
    ///
    /// A watcher sees the head of each message as it is dequeued, its sender, and the beginning of its bytes, but no
    /// descriptors and rights, and no replies. A message that finds no room on its way to a watcher is left out and
    /// counted. While there are watchers, each message costs a system call for each.
    ///
    /// - Parameter allows: false ends existing watches.
    public func setAllowsWatching(_ allows: Bool) {
        if core.isInherited { return }
        let ended = core.state.withLock { state -> [PortWatcher] in
            if state.extras.allowsWatching == allows { return [] }
            state.extras.allowsWatching = allows
            if allows { return [] }
            defer { state.extras.watchers = [] }
            return state.extras.watchers
        }
        for watcher in ended { watcher.connection.object?.answerWatch(false) }
    }
}
