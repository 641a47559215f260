// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem

extension PortError.StaticReason {
    package static let notAbsolute = Self("it is not an absolute path")
    package static let leadsUp = Self("a component of it is `..`")
    package static let hasNUL = Self("it contains a NUL byte")
    package static let symbolicLink = Self("it is a symbolic link")
    package static let notDirectory = Self("it is not a directory")
    package static let notRegularFile = Self("it is not a regular file")
    package static let otherOwner = Self("it belongs to another user")
    package static let openToOthers = Self("it is open to other users")
}

extension FileStatus {
    /// Why a directory with this status is not trusted; nil when it is.
    var directoryRefusal: PortError.StaticReason? {
        if isSymbolicLink { return .symbolicLink }
        if !isDirectory { return .notDirectory }
        if !sysIsOwnUser(owner) { return .otherOwner }
        return isOpenToOthers ? .openToOthers : nil
    }

    /// Why a file with this status in a trusted directory is not trusted; nil when it is. In a shared one it may belong
    /// to another user, unless it has to be this user's own, if only that user can write to it.
    func fileRefusal(in sharing: DirectorySharing, isOwn: Bool) -> PortError.StaticReason? {
        if isSymbolicLink { return .symbolicLink }
        if !isRegular { return .notRegularFile }
        if isOwn || !sharing.isShared, !sysIsOwnUser(owner) { return .otherOwner }
        if !sharing.isShared { return isOpenToOthers ? .openToOthers : nil }
        if !sysStandsForOneUser(owner) { return .unknownOwner }
        if permissions & 0o007 != 0 { return .openToOthers }
        return permissions & 0o020 != 0 ? .groupMayWrite : nil
    }

    private var isSymbolicLink: Bool { mode & S_IFMT == S_IFLNK }
}
