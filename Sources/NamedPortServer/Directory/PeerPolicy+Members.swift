// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort

extension PeerPolicy {
    /// Admits the processes that share a directory of names: those of this user, of the directory's owner, and those in
    /// its group. For a directory that is not shared, only this user's.
    ///
    /// - Parameter server: the name server of the directory.
    /// - Returns: the policy, for the directory as it is now.
    /// - Throws: as ``PortNameServer/list()``.
    public static func members(of server: PortNameServer) throws(PortError) -> PeerPolicy {
        guard case .group(let owner, let group, _) = try server.openDirectory().sharing else { return .sameUser }
        return .sameUser.or(.users([owner])).or(.groups([group]))
    }
}
