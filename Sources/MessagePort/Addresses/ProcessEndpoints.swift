// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// A process's sockets in the directory of sockets. All carry the process's random id, and share one lock file, made
// before the first of them: when its lock is free, the process has ended, and the next process that starts removes its
// sockets.

import PortCLibrary
import PortSystem
import Synchronization

/// Makes and owns a process's socket files in one directory.
package final class ProcessEndpoints: Sendable {
    /// The process that made it. A forked child inherits the sockets, but they are not its own.
    package let process: Int32  // immutable
    /// The id in the names of its sockets.
    package let id: String  // immutable
    let sockets: TrustedDirectory  // immutable
    private let lock: Mutex<LockedFile?>  // emptied by deinit only
    private let counter = Atomic<UInt64>(0)

    /// Chooses an id, and sweeps the sockets of processes that ended.
    ///
    /// - Parameter sockets: the directory of sockets.
    /// - Throws: `directoryUntrusted`, `descriptorLimit` and `systemCallFailed`.
    package init(in sockets: TrustedDirectory) throws(PortError) {
        process = sysProcessID()
        self.sockets = sockets
        var id = EndpointFileName.makeID()
        var taken: LockedFile?
        // Only a sweeper that found the new file before it was locked can hold the lock: then choose another id.
        for _ in 0..<16 {
            if case .locked(let mine) = try LockedFile.take(EndpointFileName.lock(of: id), in: sockets) {
                taken = consume mine
                break
            }
            id = EndpointFileName.makeID()
        }
        guard taken != nil else { throw PortError(SystemError(EAGAIN), subject: .path(sockets.path)) }
        self.id = id
        lock = Mutex(taken)
        sweep()
    }

    deinit {
        let file = lock.withLock { $0.take() }
        if let file { file.remove() }
    }

    /// A file name for a socket, never used by this process before.
    package func makeSocketName() -> String {
        "\(id).\(counter.wrappingAdd(1, ordering: .relaxed).newValue)"
    }
}
