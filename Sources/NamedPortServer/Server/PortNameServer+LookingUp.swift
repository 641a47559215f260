// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortCLibrary
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
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func lookUp(_ name: String) throws(PortError) -> SendRight { try lookUp(name, within: Self.lookUpLimit) }

    /// The right to the port with a name, as above, with a limit of the caller's own.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait for room in the port's backlog of connections. Zero or less never waits.
    /// - Returns: a right to a port of this process, reached in memory, or of another.
    /// - Throws: as ``lookUp(_:)``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func lookUp(_ name: String, within limit: Duration) throws(PortError) -> SendRight {
        do throws(PortError) {
            if let right = try find(PortName(name), until: .after(limit)) { return right }
        } catch {
            throw error.at(name: name)
        }
        throw PortError(.nameUnknown, subject: .name(name))
    }

    /// The right to the port with a name, as the blocking form gives it. Suspends the task, and blocks no thread, while
    /// too many clients wait for the port to accept them.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait for room in the port's backlog of connections. Zero or less never waits.
    /// - Returns: a right to a port of this process, reached in memory, or of another.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled`` when the task is cancelled.
    nonisolated(nonsending) public func lookUp(
        _ name: String, within limit: Duration = PortNameServer.lookUpLimit
    ) async throws(PortError) -> SendRight {
        let wait = TaskWaiter(until: .after(limit))
        defer { wait.finish() }
        do throws(PortError) {
            if Task.isCancelled { throw PortError(.cancelled, delivery: .notSent) }
            if let right = try await find(PortName(name), waiting: wait) { return right }
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
        if let (record, user) = try NameRecord.read(of: name, in: directory.names),
            let right = try RightsTable.shared.right(to: PortAddress(path: record.socketPath), until: deadline)
        {
            return try Self.verified(right, record, ownedBy: user, in: directory)
        }
        return try Self.findDeclared(name, in: directory.declared(makes: false), until: deadline)
    }

    /// The same for the I/O thread, which must not wait for a file system: connects in this directory alone. Unless it
    /// may connect to a socket that a supervisor declared for the name, the name must be held: the record of an owner
    /// that is gone may lead to its supervisor.
    func findHere(_ name: PortName, usesDeclared: Bool) throws(PortError) -> SendRight? {
        let directory = try openDirectory()
        let declared = try directory.declared(makes: false)
        let parts = ["sockets": directory.sockets, "declared": declared]
        let isUsed = if usesDeclared { true } else { try LockedFile.isLocked(name.fileName, in: directory.names) }
        if isUsed, let (record, user) = try NameRecord.read(of: name, in: directory.names),
            let right = try Self.right(to: PortAddress(path: record.socketPath), in: parts)
        {
            return try Self.verified(right, record, ownedBy: user, in: directory)
        }
        return usesDeclared ? try Self.findDeclaredHere(name, in: declared) : nil
    }

    /// As ``findDeclared(_:in:until:)``, for the I/O thread.
    static func findDeclaredHere(_ name: PortName, in directory: TrustedDirectory?) throws(PortError) -> SendRight? {
        guard let address = try declaredAddress(of: name, in: directory) else { return nil }
        return try right(to: address, in: ["declared": directory])
    }

    private static func right(to address: PortAddress, in parts: Parts) throws(PortError) -> SendRight? {
        try RightsTable.shared.right(to: address) { (address) throws(PortError) in try connect(to: address, in: parts) }
    }

    /// The same in a task, which blocks no thread while it waits.
    nonisolated(nonsending) private func find(_ name: PortName, waiting wait: TaskWaiter) async throws(PortError)
        -> SendRight?
    {
        let directory = try openDirectory()
        if let (record, user) = try NameRecord.read(of: name, in: directory.names),
            let right = try await RightsTable.shared.right(to: PortAddress(path: record.socketPath), waiting: wait)
        {
            return try Self.verified(right, record, ownedBy: user, in: directory)
        }
        guard let address = try Self.declaredAddress(of: name, in: directory.declared(makes: false)) else { return nil }
        return try await RightsTable.shared.right(to: address, waiting: wait)
    }

    private static func verified(
        _ right: SendRight, _ record: NameRecord, ownedBy user: UInt32, in directory: PortDirectory
    ) throws(PortError) -> SendRight {
        if leads(right, to: user, in: directory) { return right }
        throw PortError(.peerRefused, subject: .path(record.socketPath))
    }

    /// Whether the listener is the user that owns the name: in a shared directory a record might name another user's
    /// socket. A supervisor listens for other users.
    private static func leads(_ right: SendRight, to user: UInt32, in directory: PortDirectory) -> Bool {
        guard directory.sharing.isShared, let remote = right.destination as? RemotePort,
            let peer = remote.connection?.peer
        else { return true }
        return peer.userID == user || directory.sharing.isAdministered(by: peer.userID)
    }

    /// The right to the port that a supervisor declared; nil when no process listens, or there is no socket for the
    /// name.
    static func findDeclared(
        _ name: PortName, in directory: TrustedDirectory?, until deadline: MonotonicInstant = .distantPast
    ) throws(PortError) -> SendRight? {
        guard let address = try declaredAddress(of: name, in: directory) else { return nil }
        return try RightsTable.shared.right(to: address, until: deadline)
    }

    /// Where a supervisor listens for the name; nil when there is no socket for it, or its owner may not have the name.
    private static func declaredAddress(of name: PortName, in directory: TrustedDirectory?) throws(PortError)
        -> PortAddress?
    {
        guard let directory, let there = try? sysStatus(name.fileName, in: directory.raw), there.isSocket,
            try NameRules.allow(there.owner, name, in: directory)
        else { return nil }
        return PortAddress(path: directory.path + "/" + name.fileName)
    }

    /// The names that are held now, in alphabetical order.
    ///
    /// - Returns: each with its owner, and the time of its registration.
    /// - Throws: ``/MessagePort/PortError/Code/directoryUntrusted``, ``/MessagePort/PortError/Code/descriptorLimit``,
    ///   ``/MessagePort/PortError/Code/systemCallFailed``.
    public func list() throws(PortError) -> [Registration] {
        try Self.entries(in: openDirectory().names).map(\.registration)
    }

    /// What the files of a directory of names say, in alphabetical order of the names.
    private static func entries(in names: TrustedDirectory) throws(PortError) -> [NameEntry] {
        let entries = try NameEntry.all(in: names)
        if entries.isEmpty, !names.checkCurrent() { throw PortError(SystemError(ENOENT), subject: .path(names.path)) }
        return entries.values.sorted { $0.registration.name < $1.registration.name }
    }
}

extension PortDirectory {
    /// The path at which a supervisor listens for a name whose owner it starts on demand.
    func declaredPath(of name: PortName) -> String { path + "/declared/" + name.fileName }
}

// MARK: - Waiting

extension PortNameServer {
    /// Waits until a live port has a name, and gives the right to it. Blocks the thread in the kernel, without a run
    /// loop and without polling.
    ///
    /// The directory of names may be removed and come back meanwhile. A name that is there already is found without a
    /// wait; a limit of zero or less only looks the name up. A socket that a supervisor declares for the name is found
    /// too, also when it comes during the wait.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait.
    /// - Returns: the right, as ``lookUp(_:)`` gives it.
    /// - Throws: ``/MessagePort/PortError/Code/nameWaitTimedOut``; ``/MessagePort/PortError/Code/watchLimit`` when the
    ///   kernel gives no watch; and as ``lookUp(_:)``, but never ``/MessagePort/PortError/Code/nameUnknown``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func waitFor(_ name: String, within limit: Duration) throws(PortError) -> SendRight {
        let (portName, deadline) = (try PortName(name), MonotonicInstant.after(limit))
        if let right = try find(portName) { return right }
        if limit > .zero {
            let wait = try NameWait(for: portName, in: self)
            repeat {
                if let right = try wait.poll() { return right }
                _ = try PortError.converting(sysPoll(wait.raw, .readable, until: min(deadline, wait.nextCheck)))
            } while .now < deadline
            if let right = try wait.poll(isLast: true) { return right }
        }
        throw PortError(.nameWaitTimedOut, subject: .name(name))
    }

    /// Waits until a live port has a name, and gives the right to it. Suspends the task, and blocks no thread: one
    /// thread, shared by all asynchronous calls of the process, watches.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - limit: how long to wait.
    /// - Returns: the right, as ``lookUp(_:)`` gives it.
    /// - Throws: as the call that blocks; ``/MessagePort/PortError/Code/cancelled`` when the task is cancelled.
    nonisolated(nonsending) public func waitFor(_ name: String, within limit: Duration) async throws(PortError)
        -> SendRight
    {
        let (portName, deadline) = (try PortName(name), MonotonicInstant.after(limit))
        if Task.isCancelled { throw PortError(.cancelled, subject: .name(name), delivery: .notSent) }
        if let right = try find(portName) { return right }
        if limit > .zero {
            let wait = try NameWait(for: portName, in: self)
            defer { withExtendedLifetime(wait) {} }
            repeat {
                if let right = try wait.poll() { return right }
                try await TaskWaiter.wait(for: wait.raw, until: min(deadline, wait.nextCheck))
                if Task.isCancelled { throw PortError(.cancelled, subject: .name(name), delivery: .notSent) }
            } while .now < deadline
            if let right = try wait.poll(isLast: true) { return right }
        }
        throw PortError(.nameWaitTimedOut, subject: .name(name))
    }
}

// MARK: - Statistics

extension PortNameServer {
    /// The names that are held now, in alphabetical order, and their ports' statistics. All owners are asked at once.
    ///
    /// An owner that does not answer does not delay the others: see `SendRight.statistics(within:)`.
    /// Only ports whose sockets are in the directory are asked: the path in a record may lead to a file system that
    /// does not answer.
    ///
    /// - Parameter limit: how long to wait for all answers together.
    /// - Returns: each with its owner, and its statistics; nil for one that did not answer.
    /// - Throws: as ``list()``.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func listStatistics(within limit: Duration) throws(PortError)
        -> [(registration: Registration, statistics: PortStatistics?)]
    {
        try listAnswers(within: limit).map { ($0.registration, $0.answer.statistics) }
    }

    /// The names that are held now, and their ports' statistics, as the blocking form gives them. Suspends the task
    /// until the answers have come; one thread, shared by all asynchronous calls of the process, watches.
    ///
    /// - Parameter limit: how long to wait for all answers together.
    /// - Returns: as the blocking form.
    /// - Throws: what the blocking form throws; ``/MessagePort/PortError/Code/cancelled``.
    nonisolated(nonsending) public func listStatistics(within limit: Duration) async throws(PortError)
        -> [(registration: Registration, statistics: PortStatistics?)]
    {
        if Task.isCancelled { throw PortError(.cancelled) }
        let deadline = MonotonicInstant.after(limit)
        let (entries, addresses, connect) = try owners()
        let answers = try await StatisticsQuery.ask(addresses, until: deadline, connecting: connect)
        return zip(entries, answers).map { ($0.registration, $1.statistics) }
    }

    /// As above, with what is known of those that did not answer.
    package func listAnswers(within limit: Duration) throws(PortError)
        -> [(registration: Registration, answer: StatisticsReply)]
    {
        let deadline = MonotonicInstant.after(limit)
        let (entries, addresses, connect) = try owners()
        let answers = try StatisticsQuery.ask(addresses, until: deadline, connecting: connect)
        return zip(entries, answers).map { ($0.registration, $1) }
    }

    /// The names that are held now, where their ports are, and how to connect to those.
    private func owners() throws(PortError) -> ([NameEntry], [PortAddress], StatisticsQuery.Connect) {
        let directory = try openDirectory()
        let entries = try Self.entries(in: directory.names)
        let declared = try? directory.declared(makes: false)
        return (
            entries, entries.map { PortAddress(path: $0.socketPath) },
            { (address) throws(PortError) in
                try Self.connect(to: address, in: ["sockets": directory.sockets, "declared": declared])
            }
        )
    }

    private typealias Parts = [String: TrustedDirectory?]

    /// Connects to a socket in a part of the directory, by the last two names of its path: another process may know the
    /// directory by another path. A socket elsewhere counts as dead.
    private static func connect(
        to address: PortAddress, in parts: Parts
    ) throws(PortError) -> ConnectOutcome {
        let names = address.path.utf8.split(separator: UInt8(ascii: "/")).suffix(2).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard names.count == 2, let directory = parts[names[0]] ?? nil else { return .dead }
        return try ProcessEndpoints.connect(to: names[1], in: directory)
    }
}

extension PortNameServer {
    /// Watches the messages of the port that has a name: `byteLimit` bytes of each.
    ///
    /// - Returns: the watch, already begun.
    /// - Throws: `nameUnknown`; as `MessageTap.init`.
    package func watchMessages(
        of name: String, byteLimit: Int, until deadline: MonotonicInstant
    ) throws(PortError) -> MessageTap {
        let portName = try PortName(name)
        guard let (record, _) = try NameRecord.read(of: portName, in: openDirectory().names) else {
            throw PortError(.nameUnknown, subject: .name(name))
        }
        do throws(PortError) {
            return try MessageTap(PortAddress(path: record.socketPath), byteLimit: byteLimit, until: deadline)
        } catch {
            // A record may be left by an owner that was killed.
            throw error.code == .deadName ? PortError(.nameUnknown, subject: .name(name)) : error.at(name: name)
        }
    }
}

extension PortNameServer {
    /// Asks the owner of the port that has a name to hand that over to the successor, and waits until it is done.
    ///
    /// - Throws: `nameUnknown`; as `HandOverQuery.ask`.
    package func askForHandOver(
        of name: String, to successor: SendRight, within limit: Duration
    ) throws(PortError) {
        let portName = try PortName(name)
        guard let (record, _) = try NameRecord.read(of: portName, in: openDirectory().names) else {
            throw PortError(.nameUnknown, subject: .name(name))
        }
        do throws(PortError) {
            try HandOverQuery.ask(PortAddress(path: record.socketPath), for: successor, within: limit)
        } catch {
            throw error.code == .deadName ? PortError(.nameUnknown, subject: .name(name)) : error.at(name: name)
        }
    }
}

// MARK: - OwnPorts

extension PortNameServer {
    /// The port of this process that has a name now. Makes no right to it, so it does not affect no-senders notices.
    ///
    /// - Returns: nil when another process has the name, or none.
    func ownPort(named name: PortName) throws(PortError) -> LocalPort? {
        guard let (record, _) = try NameRecord.read(of: name, in: openDirectory().names) else { return nil }
        return RightsTable.shared.ownPort(at: PortAddress(path: record.socketPath))
    }
}
