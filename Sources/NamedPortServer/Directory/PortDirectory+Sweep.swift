// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem

extension PortDirectory {
    /// Removes the files of names whose owners ended. It leaves alone the files whose names stand for no port name, and
    /// all that the kernel refuses to remove.
    ///
    /// - Returns: how many files were removed.
    @discardableResult
    func sweepNames() -> Int {
        var removed = 0
        // In another order each time, so that files that cannot be removed do not block the rest forever.
        let files = ((try? sysList(in: names.raw)) ?? []).shuffled()
        let isController = names.keepers.isAdministered(by: sysUserID())
        let isDenied = sharing.isShared && isController ? NameRules.denials(in: names) : { _, _ in false }
        for file in files.prefix(ProcessEndpoints.sweepLimit) {
            if file.utf8.starts(with: LockedFile.asidePrefix.utf8) {
                // The process that moved it aside ended at that moment.
                guard (try? LockedFile.isLocked(file, in: names)) == false, (try? sysUnlink(file, in: names.raw)) != nil
                else { continue }
                removed += 1
            }
            guard let name = PortName(fileName: file) else { continue }
            if let user = otherUser(of: file) {
                // A lock on a name that its user may not have does not count.
                let denied = isDenied(user, name) ? user : nil
                if isController, LockedFile.removeForeign(file, in: names, deniedTo: denied) { removed += 1 }
                continue
            }
            // Checked first: opening the file of a name that is held would be reported to its watchers.
            guard (try? LockedFile.isLocked(file, in: names)) == false,
                let attempt = try? LockedFile.acquire(file, in: names, within: .zero), case .locked(let lock) = attempt
            else { continue }
            lock.remove()
            removed += 1
        }
        return removed
    }

    /// The user that owns a file in a shared directory; nil when it is this user.
    private func otherUser(of file: String) -> UInt32? {
        guard sharing.isShared, let status = try? sysStatus(file, in: names.raw), !sysIsOwnUser(status.owner)
        else { return nil }
        return status.owner
    }
}
