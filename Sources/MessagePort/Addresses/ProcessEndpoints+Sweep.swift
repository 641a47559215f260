// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

extension ProcessEndpoints {
    /// The most processes and files together that one sweep examines; the next process that starts examines more.
    private static let sweepLimit = 10_000

    /// Removes the sockets and lock files of processes that ended. It leaves alone names of another form, and what the
    /// kernel refuses to remove.
    ///
    /// - Returns: how many files were removed.
    @discardableResult
    package func sweep() -> Int {
        guard let names = try? sysList(in: sockets.raw) else { return 0 }
        var files: [String: [String]] = [:]
        var locks: Set<String> = []
        for name in names {
            guard let parsed = EndpointFileName(name), parsed.id != id else { continue }
            if parsed.isLock { locks.insert(parsed.id) } else { files[parsed.id, default: []].append(name) }
        }
        // In another order each time, so that files that cannot be removed do not block the rest forever.
        var (removed, looked) = (0, 0)
        for owner in locks.union(files.keys).shuffled() {
            guard looked < Self.sweepLimit else { break }
            let names = files[owner, default: []].prefix(Self.sweepLimit - looked)
            looked += names.count + 1
            removed += sweep(owner, names, hadLock: locks.contains(owner))
        }
        return removed
    }

    /// Removes one owner's files, unless it lives.
    private func sweep(_ owner: String, _ names: ArraySlice<String>, hadLock: Bool) -> Int {
        // The lock file says to which user the id belongs. Another user's file among the others cannot be removed, and
        // is left alone.
        let lockName = EndpointFileName.lock(of: owner)
        if isOthers(hadLock ? lockName : names.first ?? lockName) { return 0 }
        // The lock is held while the files are removed, so a process that is just making its id is not mistaken for a
        // dead one.
        guard let attempt = try? LockedFile.take(lockName, in: sockets, within: .zero) else { return 0 }
        guard case .locked(let lock) = attempt else { return 0 }
        var removed = 0
        for name in names {
            // A living process's lock file may have been removed: then ask the socket.
            guard hadLock || isDead(name) else { continue }
            if (try? sysUnlink(name, in: sockets.raw)) != nil { removed += 1 }
        }
        lock.remove()
        return removed + (hadLock ? 1 : 0)
    }

    /// Whether a file in a shared directory belongs to another user, whose processes sweep it.
    private func isOthers(_ name: String) -> Bool {
        guard sockets.sharing.isShared, let status = (try? sysStatus(name, in: sockets.raw)) ?? nil else {
            return false
        }
        return !sysIsOwnUser(status.owner)
    }

    private func isDead(_ name: String) -> Bool {
        guard case .dead = try? Self.connect(to: name, in: sockets) else { return false }
        return true
    }
}
