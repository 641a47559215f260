// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// Which listeners of other users this process connects to: those in a shared directory that the program has opened, if
// the user that listens made the socket's file. The kernel vouches for both: a user cannot give a file to another user,
// and in a shared directory cannot replace another user's file.

import PortSystem
import Synchronization

extension PortDirectory {
    /// The shared directories that are open, by path; one may be open several times.
    private static let shared = Mutex<[[UInt8]: [WeakReference<PortDirectory>]]>([:])

    /// Allows connections to listeners of other users in the directory, if it is a shared one.
    func noted() -> Self {
        guard sharing.isShared else { return self }
        Self.shared.withLock { known in
            known = known.compactMapValues { opened in
                let living = opened.filter { $0.object != nil }
                return living.isEmpty ? nil : living
            }
            known[Array(path.utf8), default: []].append(WeakReference(object: self))
        }
        return self
    }

    /// The shared directory that is open at a path, by whatever path it was opened; not one that was there before.
    private static func opened(at path: String) -> PortDirectory? {
        // Those that were opened by this path come first.
        let living = shared.withLock { known in
            (known[Array(path.utf8)] ?? []).compactMap(\.object) + known.values.joined().compactMap(\.object)
        }
        return living.first { $0.isAlso(at: path) }
    }

    /// Whether this process may talk to another user that listens at a path; the user is the one that the kernel
    /// reports for the connection.
    static func admitsListener(_ user: UInt32, atPath path: String) -> Bool {
        guard sysStandsForOneUser(user), let (part, name) = SocketPath.split(path),
            let (top, last) = SocketPath.split(part), let directory = opened(at: top)
        else { return false }
        // A supervisor's socket is made for another user, by root.
        let isDeclared = last.utf8.elementsEqual(declaredName.utf8)
        if isDeclared, directory.sharing.isKept(by: user) { return true }
        guard let maker = directory.maker(of: name, in: last) else { return false }
        return maker == user
    }

    /// The user that owns a socket in a part of the directory; nil when there is none, or its owner cannot be known.
    private func maker(of name: String, in part: String) -> UInt32? {
        let holder: TrustedDirectory?
        if part.utf8.elementsEqual("sockets".utf8) {
            holder = sockets
        } else if part.utf8.elementsEqual(Self.declaredName.utf8) {
            holder = (try? declared(makes: false)) ?? nil
        } else {
            holder = nil
        }
        guard let holder, let status = (try? sysStatus(name, in: holder.raw)) ?? nil, status.isSocket else {
            return nil
        }
        return status.owner
    }
}
