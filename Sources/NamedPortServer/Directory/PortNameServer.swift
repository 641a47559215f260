// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
public import PortSystem
import Synchronization

// There is no server process. A name is a file in the directory of names: its lock says that the name is held, and its
// contents say where the port listens. The kernel drops the lock when the owner ends, in whatever way, so a name is
// free the moment its owner is gone. A port listens before its name is written, so a name that can be seen never
// refuses.

/// Registers ports under names and looks them up, between the processes of one user. `NSMessagePortNameServer`,
/// `bootstrap_check_in`, `bootstrap_look_up`.
///
/// - Important: Thread safety: any thread.
public final class PortNameServer: Sendable {
    /// The names of this process's user: in `$XDG_RUNTIME_DIR/swift-ports`, else in `swift-ports` in the first
    /// directory of `$RUNTIME_DIRECTORY`, else in `swift-ports-<user id>` in the temporary directory; or where
    /// `SWIFT_PORT_DIRECTORY` says, which is set in programs that were started for a name in a private directory.
    public static let shared = PortNameServer(directory: nil)

    private let opened: Mutex<PortDirectory?>  // nil: the user's; opened again when it was replaced
    let held = Mutex<[PortName: NameRegistration]>([:])
    /// The fork count of the process that last put a name into `held`: a child of it has none there.
    let holderForkCount = Atomic<UInt32>(sysForkCount())

    /// The interval at which to scan where the kernel gives no directory watch.
    let scanning = IntervalScans()

    private init(directory: PortDirectory?) {
        opened = Mutex(directory)
    }

    /// Makes a name server with names of its own, in a private directory.
    ///
    /// A directory that is removed later is not made again: names are unknown then, and registering fails. Once there
    /// is another at its path, that is used.
    ///
    /// - Parameter directory: an absolute path. The directory is made if it is not there; its parent must be.
    /// - Throws: ``/MessagePort/PortError/Code/directoryUntrusted`` when it is a link, no directory, another user's, or
    ///   open to others, or when the path is not absolute or holds a NUL;
    ///   ``/MessagePort/PortError/Code/descriptorLimit``; ``/MessagePort/PortError/Code/systemCallFailed``.
    public convenience init(directory: String) throws(PortError) {
        self.init(directory: try PortDirectory.open(path: directory))
    }

    /// Makes a name server whose names are shared by the users of one group.
    ///
    /// The directory's owner or an administrator makes it, with mode 3770, 2750 or 0750 and that group:
    /// `Docs/Security.md` says which user may do what in it. A directory of mode 0700 of this process's own user will
    /// do, too.
    ///
    /// A port that other users are to reach needs a ``/MessagePort/PeerPolicy`` that admits them, such as
    /// `members(of:)`, and its address in this directory: it is registered here before it is registered elsewhere or
    /// sent to another process. Rights received in messages lead to ports of other users in this directory as long as
    /// this object lives, or a name that was registered by it is held. An optimized build may release the object after
    /// its last use, so a client retains it: see `Docs/LifeCycle.md`.
    ///
    /// - Parameter sharedDirectory: an absolute path.
    /// - Throws: as ``init(directory:)``; ``/MessagePort/PortError/Code/directoryUntrusted`` too when members of the
    ///   group could replace a service's name, as with mode 2770.
    public convenience init(sharedDirectory: String) throws(PortError) {
        self.init(directory: try PortDirectory.open(path: sharedDirectory, mayBeShared: true))
    }

    /// The directory in which the services of a whole system have their names: `/run/swift-ports`, which an
    /// administrator makes as a shared directory.
    public static let systemDirectory = "/run/swift-ports"

    /// From now on ``shared``, and the addresses of ports of this program, are in a shared directory, unless
    /// `SWIFT_PORT_DIRECTORY` names another, which may be shared then, too. Call it before the program uses ports.
    ///
    /// - Parameter sharedDirectory: an absolute path, such as ``systemDirectory``; nil for the user's own directory.
    /// - Throws: as ``init(sharedDirectory:)``: the directory is opened. Nothing has changed then.
    public static func setDomain(sharedDirectory: String?) throws(PortError) {
        if let sharedDirectory { _ = try PortDirectory.open(path: sharedDirectory, mayBeShared: true) }
        PortDirectory.setDomain(sharedDirectory)
    }

    /// The directory to use now.
    func openDirectory() throws(PortError) -> PortDirectory {
        guard let known = opened.withLock({ $0 }) else { return try .user() }
        if known.checkCurrent() { return known }
        guard let fresh = try known.reopened() else { return known }
        return opened.withLock { opened in
            // Another thread may have opened it meanwhile.
            if let other = opened, other !== known { return other }
            opened = fresh
            return fresh
        }
    }
}

// MARK: - Registration

extension PortNameServer {
    /// A name, the process that holds it, and since when.
    ///
    /// Printed, it is one line: `org.example.greeter: process 4711, since 2026-11-21T14:37:10Z`.
    public struct Registration: Hashable, Sendable, CustomStringConvertible {
        /// The name.
        public let name: String
        /// The process that holds it.
        public let owner: Int32
        /// When it was registered, in whole seconds.
        public let since: MonotonicInstant
        /// When the owner started: the time from the machine's start, in the kernel's ticks. With ``owner`` it
        /// distinguishes a process from another that gets the same id later. Nil when it cannot be known, for example
        /// in another PID namespace.
        public let ownerStart: Duration?

        /// For how long the name has been held.
        public var age: Duration { since.duration(to: .now) }

        /// When the name was registered, by the wall clock as it is set now.
        public var sinceTime: UTCTime { UTCTime(sysWallTime(before: { age })) }

        /// When the owner started, by the wall clock as it is set now.
        public var ownerStartTime: UTCTime? {
            ownerStart.map { start in UTCTime(sysWallTime(before: { sysTimeSinceBoot() - start })) }
        }

        /// Name, owner, and since when. Characters of the name that would act on a terminal are escaped.
        public var description: String { "\(harmlessText(name)): process \(owner), since \(sinceTime)" }
    }
}

extension PortNameServer.Registration {
    /// Reads when the owner started.
    init(_ name: PortName, _ record: NameRecord) {
        let (seconds, overflow) = record.since.multipliedReportingOverflow(by: 1_000_000_000)
        self.init(
            name: name.string, owner: record.owner,
            since: overflow ? .distantFuture : MonotonicInstant(nanoseconds: seconds),
            ownerStart: sysProcessStart(record.owner))
    }
}
