// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort

extension PeerPolicy {
    /// Those who share a directory of names: processes of this user, of the directory's owner, and those in its group. Of
    /// one that is not shared, this user's alone.
    ///
    /// - Parameter server: the names.
    /// - Returns: the policy, for the directory as it is now.
    /// - Throws: as ``PortNameServer/list()``.
    public static func members(of server: PortNameServer) throws(PortError) -> PeerPolicy {
        guard case .group(let owner, let group, _) = try server.openDirectory().sharing else { return .sameUser }
        return .sameUser.or(.users([owner])).or(.groups([group]))
    }
}
