// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

package import PortCLibrary
import PortSystem

/// Which users share a directory, as its owner and its mode say.
package enum DirectorySharing: Hashable, Sendable {
    /// None but its owner: mode 0700.
    case none
    /// The members of a group, which trust the directory's owner. With mode 3770 each member makes files in it, which
    /// only their owner and the directory's can remove; with 2750 or 0750 only the directory's owner makes any.
    case group(owner: uid_t, group: gid_t, permissions: mode_t)

    /// The modes of a shared directory.
    static let modes: Set<mode_t> = [0o3770, 0o2750, 0o0750]

    /// The sharing of a trusted directory.
    init(_ status: FileStatus) {
        self =
            Self.modes.contains(status.permissions)
            ? .group(owner: status.owner, group: status.group, permissions: status.permissions) : .none
    }

    /// Whether the directory is shared.
    package var isShared: Bool { self != .none }

    /// Whether a user controls the whole directory: its owner and root do.
    package func isAdministered(by user: uid_t) -> Bool {
        guard case .group(let owner, _, _) = self else { return sysIsOwnUser(user) }
        return user == owner || user == 0
    }
}

extension FileStatus {
    /// Why a directory with this status is not shared as it should be; nil when it is. When its parent is shared, too,
    /// the parent's owner or root must own it: otherwise the first member to make it would control the names of others.
    func sharingRefusal(in parent: DirectorySharing = .none) -> PortError.StaticReason? {
        guard isDirectory else { return directoryRefusal() ?? .notDirectory }
        if !sysStandsForOneUser(owner) { return .unknownOwner }
        if parent.isShared, !parent.isAdministered(by: owner) { return .memberOwner }
        if permissions & 0o007 != 0 { return .openToOthers }
        if DirectorySharing.modes.contains(permissions) { return nil }
        if permissions & 0o1020 == 0o020 { return .notSticky }
        return permissions & 0o2020 == 0o020 ? .notSetGroup : .notSharedMode
    }
}

extension PortError.StaticReason {
    static let notSticky = Self(
        "any member of its group could replace the name of a service: mode 3770 has the sticky bit against that")
    static let notSetGroup = Self(
        "what a member makes in it is not the group's: mode 3770 has the set-group bit for that")
    static let notSharedMode = Self("a shared directory has the mode 3770, 2750 or 0750")
    static let memberOwner = Self("it belongs neither to the owner of the shared directory nor to root")
    static let unknownOwner = Self("it belongs to a user who has no number in this user namespace")
    static let groupMayWrite = Self("others than its owner may write to it")
    static let tooLong = Self("it is longer than it may be")
    static let notMadeByOwner = Self(
        "the owner of the shared directory has not made it: run `portctl list --directory` as that user once")
}
