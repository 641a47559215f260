// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem
import Synchronization

extension PortSockets {
    /// Listens with another socket in place of the one whose path has gone. The connections stay.
    ///
    /// - Parameters:
    ///   - path: the path that has gone. A port that listens elsewhere by now goes on doing so.
    ///   - listener: the other socket.
    /// - Returns: the address.
    /// - Throws: `invalidPort` when the sockets are closed; why the kernel cannot watch the other one.
    func replaceListener(at path: String, by listener: consuming Listener) throws(PortError) -> PortAddress {
        var offered: Listener? = consume listener
        var old: Listener?  // closed after the lock is free
        let result = state.withLock { (state) -> Result<PortAddress, PortError> in
            if state.isClosed { return .failure(PortError(.invalidPort)) }
            if let now = state.listener?.path, now != path { return .success(PortAddress(path: now)) }
            guard let made = offered.take() else { return .failure(PortError(.invalidPort)) }
            do throws(SystemError) {
                try epoll.add(made.descriptor.raw, .readable, key: Self.listenerKey)
            } catch {
                return .failure(PortError(error))
            }
            let address = PortAddress(path: made.path)
            old = state.listener.take()
            if let gone = old?.descriptor.raw { epoll.remove(gone) }
            state.listener = consume made
            return .success(address)
        }
        _ = consume old
        return try result.get()
    }
}
