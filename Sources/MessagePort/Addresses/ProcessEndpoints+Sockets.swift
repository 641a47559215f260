// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension ProcessEndpoints {
    /// The absolute path of a socket.
    package func path(of name: String) -> String { sockets.path + "/" + name }

    /// Removes a socket's file. A file that is not there is no error; in a forked child this does nothing, as the
    /// socket belongs to the parent.
    package func removeSocket(_ name: String) {
        guard sysProcessID() == process else { return }
        // If the kernel refuses, the next process that sweeps removes the file.
        try? sysUnlink(name, in: sockets.raw)
    }

    /// Makes a socket under a fresh name and lets others connect. It gets its name only when it listens, so a process
    /// that sees it is not refused.
    ///
    /// - Parameter backlog: how many connections may wait to be accepted.
    /// - Returns: the listener, which removes its path when it goes away.
    /// - Throws: `descriptorLimit`, and `systemCallFailed` for example when the directory was removed or the disk is
    ///   full.
    package func makeListener(backlog: Int32) throws(PortError) -> Listener {
        let name = makeSocketName()
        let temporary = name + ".new"
        do throws(SystemError) {
            let descriptor = try sysPacketSocket()
            try sysBind(descriptor.raw, path: SocketPath.reachable(temporary, in: sockets))
            do throws(SystemError) {
                if case .group(_, let group, _) = sockets.sharing {
                    try sysShareSocket(temporary, in: sockets.raw, with: group)
                }
                try sysListen(descriptor.raw, backlog: backlog)
                try sysRename(temporary, to: name, in: sockets.raw)
            } catch {
                removeSocket(temporary)
                throw error
            }
            return Listener(descriptor, name: name, of: self)
        } catch {
            throw PortError(error, subject: .path(path(of: name), SocketPath.refusal(path(of: name))))
        }
    }
}
