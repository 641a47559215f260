// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import PortSystem

/// A process that sent a message, that owns a port, or that wants to connect to one: opened, so that no other process
/// can take its place. ``PeerIdentity/openProcess()`` and ``ConnectingPeer/openProcess()`` open it.
///
/// It outlives the connection over which the process was identified. User, groups and label are those that the process
/// had when the connection was made; of a worker, when it was launched; of this process, now.
///
/// - Important: Thread safety: any thread.
public struct PeerProcess: Sendable {
    /// Its number, effective user and effective group.
    public let identity: PeerIdentity
    /// Its supplementary groups (`SO_PEERGROUPS`); nil where the kernel does not report them: before Linux 4.13, and in
    /// some sandboxes.
    public let supplementaryGroups: [UInt32]?
    /// The label that a security module such as SELinux or AppArmor has for it (`SO_PEERSEC`); nil where none has one,
    /// and for a worker that this process launched, because its sockets are older than its label. Bytes that are not
    /// UTF-8 become U+FFFD.
    public let securityLabel: String?
    /// When it started: the time since the machine's boot, in whole ticks of the kernel's clock (`sysconf(3)`,
    /// `_SC_CLK_TCK`). With the number it identifies a process until the machine reboots. Nil where `/proc` is not
    /// mounted, hides the process, or is of a PID namespace in which the process has no number.
    public let startTime: Duration?
    /// A descriptor of it (`pidfd_open(2)`): readable once it has ended, so a run loop can wait for that with
    /// ``/RunLoopCore/RunLoopSource/init(name:descriptor:order:schedule:cancel:perform:)``. It closes with the last
    /// reference to it.
    ///
    /// To read `/proc/<process>/exe`, read the link, and then check ``hasEnded()``: while that is false, the number
    /// belongs to this process, and so does what you read.
    public let descriptor: SharedDescriptor

    /// The process at the other end of a socket, which has that identity.
    init(_ identity: PeerIdentity, at socket: SharedDescriptor) throws(PortError) {
        do throws(SystemError) {
            let process = SharedDescriptor(try sysPeerProcess(socket.rawValue))
            try self.init(identity, process, socket, hasLabel: true)
        } catch {
            throw PortError(opening: error, Refusals.peerProcess)
        }
    }

    /// The process at the other end of a connection.
    init(_ identity: PeerIdentity, _ peer: ConnectionTable.Peer) throws(PortError) {
        switch peer {
        case .connected(let socket): try self.init(identity, at: socket)
        case .launched(let launched, let socket):
            do throws(SystemError) {
                guard let launched else { throw SystemError.processEnded }
                try self.init(identity, launched.openProcess(), socket, hasLabel: false)
            } catch {
                throw PortError(opening: error, Refusals.processDescriptor)
            }
        }
    }

    /// This process, which has that identity.
    init(ofThisProcess identity: PeerIdentity) throws(PortError) {
        do throws(SystemError) {
            guard let process = try sysProcessDescriptor(of: identity.processID) else { throw SystemError.processEnded }
            // The kernel knows the maker of a pair of sockets as it knows a peer.
            let (end, other) = try sysPacketSocketPair()
            defer { withExtendedLifetime(other) {} }
            try self.init(identity, SharedDescriptor(process), end, hasLabel: true)
        } catch {
            throw PortError(opening: error, Refusals.processDescriptor)
        }
    }

    /// The process of a descriptor, whose groups and label the kernel knows by a socket.
    private init(
        _ identity: PeerIdentity, _ process: SharedDescriptor, _ socket: SharedDescriptor, hasLabel: Bool
    ) throws(SystemError) {
        self.identity = identity
        descriptor = process
        supplementaryGroups = try Self.groups(socket)
        securityLabel = hasLabel ? try sysPeerLabel(socket.rawValue) : nil
        startTime = try sysProcessStart(openedAs: process.rawValue)
        // Only now is it known that what /proc said was about this process: it had its number until here.
        if try sysHasEnded(openedAs: process.rawValue) { throw SystemError.processEnded }
        withExtendedLifetime(socket) {}
    }

    private static func groups(_ socket: SharedDescriptor) throws(SystemError) -> [UInt32]? {
        do throws(SystemError) {
            return try sysPeerGroups(socket.rawValue)
        } catch {
            if error == Refusals.peerGroups.error { return nil }
            throw error
        }
    }

    /// Asks the kernel whether it has ended, reaped or not.
    ///
    /// - Returns: true also if the kernel does not answer, because what was read of a process is only certain while this
    ///   is false.
    public func hasEnded() -> Bool {
        withExtendedLifetime(descriptor) { (try? sysHasEnded(openedAs: descriptor.rawValue)) ?? true }
    }

    /// Sends it a signal (`pidfd_send_signal(2)`). For a process that has ended this does nothing, which is no error.
    ///
    /// - Parameter number: the signal; 0 only checks whether this process may send it one.
    /// - Throws: ``PortError/Code/systemCallFailed`` with `EPERM` when it is another user's; with `EINVAL` when there is
    ///   no such signal, or its PID namespace is neither this process's nor inside that; with `ENOSYS`, or the error of
    ///   a filter, where the system refuses the call.
    public func signal(_ number: Int32) throws(PortError) {
        do throws(SystemError) {
            try sysSignal(openedAs: descriptor.rawValue, number)
            withExtendedLifetime(descriptor) {}
        } catch {
            if error != .processEnded { throw PortError(error) }
        }
    }
}

extension SystemError {
    /// The error for a process that has ended.
    fileprivate static let processEnded = SystemError(ESRCH)
}

extension PortError {
    /// Why a process could not be opened, by a call that the system may refuse.
    fileprivate init(opening error: SystemError, _ refusal: Refusal) {
        let known = refusal === Refusals.peerProcess ? StaticReason.noPeerProcess : .noProcessDescriptor
        let reason: StaticReason? = error == .processEnded ? .processHasEnded : error == refusal.error ? known : nil
        self.init(error, subject: reason.map { .reason($0) })
    }
}

extension PortError.StaticReason {
    fileprivate static let processHasEnded = Self("the process has ended")
    fileprivate static let noPeerProcess = Self(
        "this system gives no descriptor of a peer's process, which takes Linux 6.5 and no filter")
    fileprivate static let noProcessDescriptor = Self(
        "this system gives no descriptor of a process, which takes Linux 5.3 and no filter")
}
