// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// There is no server process. A name is a file in the directory of names: its lock says that the name is held, and its
// contents tell where the port listens. The kernel drops the lock when the owner ends, in whatever way, so a name is
// free the moment its owner is gone. A port listens before its name is written, so a name that can be seen never
// refuses.

import MessagePort
import PortSystem
import Synchronization

/// Registers ports under names and looks them up, between the processes of one user. `NSMessagePortNameServer`,
/// `bootstrap_check_in`, `bootstrap_look_up`.
///
/// - Important: Thread safety: any thread.
public final class PortNameServer: Sendable {
    /// The names of this process's user: in `$XDG_RUNTIME_DIR/swift-ports`, else in `swift-ports` in the first directory
    /// of `$RUNTIME_DIRECTORY`, else in `swift-ports-<user id>` in the temporary directory; or where `SWIFT_PORT_DIRECTORY` says, which programs have that were started for a name in a
    /// private directory.
    public static let shared = PortNameServer(directory: nil)

    private let opened: Mutex<PortDirectory?>  // nil: the user's; opened again when it was replaced
    let held = Mutex<[PortName: HeldName]>([:])
    /// The fork count of the process that has put a name into `held` last: a child of it has none there.
    let holderForkCount = Atomic<UInt32>(sysForkCount())

    private init(directory: PortDirectory?) {
        opened = Mutex(directory)
    }

    /// Names of their own, in a private directory.
    ///
    /// One that is removed later is not made again: names are unknown then, and registering fails. Once another is
    /// there at its path, that is used.
    ///
    /// - Parameter directory: an absolute path. The directory is made if it is not there; its parent must be.
    /// - Throws: ``/MessagePort/PortError/Code/directoryUntrusted`` when it is a link, no directory, another user's, or
    ///   open to others, or when the path is not absolute or holds a NUL;
    ///   ``/MessagePort/PortError/Code/descriptorLimit``; ``/MessagePort/PortError/Code/systemCallFailed``.
    public convenience init(directory: String) throws(PortError) {
        self.init(directory: try PortDirectory.open(path: directory))
    }

    /// The directory to use now.
    func openDirectory() throws(PortError) -> PortDirectory {
        guard let known = opened.withLock({ $0 }) else { return try .user() }
        if known.isCurrent { return known }
        guard let fresh = try PortDirectory.openExisting(path: known.path) else { return known }
        return opened.withLock { opened in
            // Another thread may have opened it meanwhile.
            if let other = opened, other !== known { return other }
            opened = fresh
            return fresh
        }
    }
}
