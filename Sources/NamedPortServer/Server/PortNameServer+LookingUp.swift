// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import MessagePort
import PortSystem

extension PortNameServer {
    /// The right to the port with a name. The same port gives the same right each time.
    ///
    /// When no live port has the name, the call connects to the socket that a supervisor declared for it, if there is
    /// one, and the supervisor starts the name's owner (`Docs/Activation.md`).
    ///
    /// - Parameter name: the name.
    /// - Returns: a right to a port of this process, reached in memory, or of another.
    /// - Throws: ``/MessagePort/PortError/Code/nameUnknown`` when no live port has the name now;
    ///   ``/MessagePort/PortError/Code/sendTimedOut`` when for ``lookUpLimit`` too many clients wait for the port to
    ///   accept them; ``/MessagePort/PortError/Code/nameEmpty``, ``/MessagePort/PortError/Code/nameTooLong``,
    ///   ``/MessagePort/PortError/Code/nameHasNUL``; ``/MessagePort/PortError/Code/peerRefused``;
    ///   ``/MessagePort/PortError/Code/malformedPacket`` when the socket that listens for the name is no socket of
    ///   packets; ``/MessagePort/PortError/Code/directoryUntrusted``, ``/MessagePort/PortError/Code/descriptorLimit``,
    ///   ``/MessagePort/PortError/Code/systemCallFailed``.
    public func lookUp(_ name: String) throws(PortError) -> SendRight { try lookUp(name, within: Self.lookUpLimit) }

    /// The right to the port with a name, as above, with a limit of the caller's own.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait for room in the port's backlog of connections. Zero or less never waits.
    /// - Returns: a right to a port of this process, reached in memory, or of another.
    /// - Throws: as ``lookUp(_:)``.
    public func lookUp(_ name: String, within limit: Duration) throws(PortError) -> SendRight {
        do throws(PortError) {
            if let right = try find(PortName(name), until: .after(limit)) { return right }
        } catch {
            throw error.at(name: name)
        }
        throw PortError(.nameUnknown, subject: .name(name))
    }

    /// How long a look-up waits when the port's backlog of connections is full: 1 s.
    public static let lookUpLimit = Duration.seconds(1)

    /// The right to the port with a name; nil when there is none.
    func find(_ name: PortName, until deadline: MonotonicInstant = .distantPast) throws(PortError) -> SendRight? {
        let directory = try openDirectory()
        if let (record, user) = try NameRecord.readSigned(of: name, in: directory.names),
            let right = try RightsTable.shared.right(to: PortAddress(path: record.socketPath), until: deadline)
        {
            if Self.leads(right, to: user, in: directory) { return right }
            throw PortError(.peerRefused, subject: .path(record.socketPath))
        }
        return try Self.findDeclared(name, in: directory.declared(makes: false), until: deadline)
    }

    /// Whether the listener is the user that owns the name: in a shared directory a record might name another user's
    /// socket. A supervisor listens for other users.
    private static func leads(_ right: SendRight, to user: UInt32, in directory: PortDirectory) -> Bool {
        guard directory.sharing.isShared, let remote = right.destination as? RemotePort,
            let peer = remote.connection?.peer
        else { return true }
        return peer.userID == user || directory.sharing.isKept(by: peer.userID)
    }

    /// The right to the port that a supervisor declared; nil when no process listens, or there is no socket for the
    /// name.
    static func findDeclared(
        _ name: PortName, in directory: TrustedDirectory?, until deadline: MonotonicInstant = .distantPast
    ) throws(PortError) -> SendRight? {
        guard let directory, let there = (try? sysStatus(name.fileName, in: directory.raw)) ?? nil, there.isSocket,
            try NameRules.allow(there.owner, name, in: directory)
        else { return nil }
        let address = PortAddress(path: directory.path + "/" + name.fileName)
        return try RightsTable.shared.right(to: address, until: deadline)
    }

    /// The names that are held now, in alphabetical order.
    ///
    /// - Returns: each with its owner, and the time of its registration.
    /// - Throws: ``/MessagePort/PortError/Code/directoryUntrusted``, ``/MessagePort/PortError/Code/descriptorLimit``,
    ///   ``/MessagePort/PortError/Code/systemCallFailed``.
    public func list() throws(PortError) -> [Registration] {
        let names = try openDirectory().names
        let entries = try NameEntry.all(in: names)
        if entries.isEmpty, !names.isCurrent { throw PortError(SystemError(ENOENT), subject: .path(names.path)) }
        return entries.values.map(\.registration).sorted { $0.name < $1.name }
    }
}

extension PortDirectory {
    /// The path at which a supervisor listens for a name whose owner it starts on demand.
    func declaredPath(of name: PortName) -> String { path + "/declared/" + name.fileName }
}
