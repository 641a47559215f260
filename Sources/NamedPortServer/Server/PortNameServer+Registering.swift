// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortCLibrary
import PortSystem
import Synchronization

extension PortError.StaticReason {
    fileprivate static let addressElsewhere = Self(
        "the port has an address that other users cannot reach: register it in the shared directory first")
    fileprivate static let hasAddress = Self("the port has an address already: a port checks in before anything else")
}

extension PortNameServer {
    /// Gives a port a name. A port may have several. The name is free again when the port becomes invalid, or this
    /// process ends; it does not depend on this object's lifetime.
    ///
    /// A port whose address has gone, because its socket or the whole directory was removed or replaced, gets a new
    /// one. Rights that other processes have to it stay valid, and are not equal to those that they look up from then
    /// on.
    ///
    /// - Parameters:
    ///   - port: the port; from now on other processes can reach it.
    ///   - name: 1 to 128 bytes of UTF-8, any but NUL.
    /// - Throws: ``/MessagePort/PortError/Code/nameTaken``; ``/MessagePort/PortError/Code/nameEmpty``,
    ///   ``/MessagePort/PortError/Code/nameTooLong``, ``/MessagePort/PortError/Code/nameHasNUL``;
    ///   ``/MessagePort/PortError/Code/invalidPort``; ``/MessagePort/PortError/Code/forkedProcess``;
    ///   ``/MessagePort/PortError/Code/nameNotAllowed`` in a shared directory that does not let this user have the
    ///   name; ``/MessagePort/PortError/Code/directoryUntrusted``, ``/MessagePort/PortError/Code/descriptorLimit``,
    ///   ``/MessagePort/PortError/Code/systemCallFailed``. The name is not held then.
    public func register(_ port: MachPort, name: String) throws(PortError) {
        try port.localPort.checkProcess()
        guard port.isValid else { throw PortError(.invalidPort, subject: .name(name)) }
        let portName = try PortName(name)
        let directory = try openDirectory()
        // For a name that is taken the port gets no address. A free one is locked once the address is there, so that a
        // second process finds the name's record soon.
        do throws(PortError) {
            try hold(portName, for: port, in: directory) { () throws(PortError) in
                _ = try Self.reachableAddress(of: port, in: directory)
            } _: { (write) throws(PortError) in
                try write(try Self.reachableAddress(of: port, in: directory))
            }
        } catch {
            // When the port has ended meanwhile and removed its socket, that is the cause, whatever the kernel says.
            throw port.isValid ? error : PortError(.invalidPort, subject: .name(name))
        }
    }

    /// Locks a name, has `body` write its record with the port's address, and makes the name end with the port. Before
    /// that calls `prepare`, when the name seems to be free.
    ///
    /// - Throws: as `lock`; what `prepare` and `body` throw. The name is not held then.
    func hold(
        _ name: PortName, for port: MachPort, in directory: PortDirectory,
        preparing prepare: () throws(PortError) -> Void = {},
        _ body: (_ write: (PortAddress) throws(PortError) -> Void) throws(PortError) -> Void
    ) throws(PortError) {
        if try !NameRules.allow(sysUserID(), name, in: directory.names) {
            throw PortError(.nameNotAllowed, subject: .name(name.string))
        }
        if directory.beginSweepOfNames() { directory.sweepNames() }
        let file = try Self.lock(name, in: directory.names, preparing: prepare)
        do throws(PortError) {
            try file.cut()  // a dead owner's record is void
            try body { (address) throws(PortError) in try file.write(try Self.record(address).contents) }
        } catch {
            file.remove()
            throw error
        }
        try keep(file, as: name, for: port, in: directory)
    }

    /// Holds a name whose file is locked and has its record, until the port ends.
    private func keep(
        _ file: consuming LockedFile, as name: PortName, for port: MachPort, in directory: PortDirectory
    ) throws(PortError) {
        // A held name retains the directory: while it is open, rights to ports of its other users lead there.
        let registration = NameRegistration(file, for: port.localPort) { [weak self, directory] registration in
            withExtendedLifetime(directory) { self?.forget(name, registration) }
        }
        holderForkCount.store(sysForkCount(), ordering: .relaxed)
        let old = held.withLock { $0.updateValue(registration, forKey: name) }
        withExtendedLifetime(old) {}
        guard port.isValid, !registration.isFreed else {
            forget(name, registration)  // the port's end may have come before the entry
            throw PortError(.invalidPort, subject: .name(name.string))
        }
    }

    /// Holds the names that have come with a port from another process, in this object's directory: as those that this
    /// process has registered.
    ///
    /// - Returns: the names.
    /// - Throws: as ``register(_:name:)``. The names that were not reached end with the port.
    package func adoptNames(of port: MachPort) throws(PortError) -> [PortName] {
        let directory = try openDirectory()
        var names: [PortName] = []
        for arrived in port.localPort.receivedNames where arrived.directory.path.utf8.elementsEqual(directory.path.utf8)
        {
            guard let name = PortName(fileName: arrived.fileName), let file = arrived.take() else { continue }
            try keep(file, as: name, for: port, in: directory)
            names.append(name)
        }
        return names
    }

    /// Frees a name that this process holds. The port goes on; rights to it stay valid.
    ///
    /// - Parameter name: the name.
    /// - Returns: false when this object holds no such name. In a forked child it holds none of its parent's.
    @discardableResult
    public func unregister(_ name: String) -> Bool {
        guard let portName = try? PortName(name) else { return false }
        return free(portName) { _ in true }
    }

    /// Frees a name, if this object holds it for the port. Opens no file, so nothing can prevent it.
    @discardableResult
    package func free(_ name: PortName, of port: LocalPort) -> Bool {
        free(name) { $0.belongs(to: port) }
    }

    /// Whether this object holds a name for the port, and the name can be found.
    func holds(_ name: PortName, for port: LocalPort) -> Bool {
        guard let registration = held.withLock({ $0[name] }) else { return false }
        return registration.belongs(to: port) && registration.checkReachable()
    }

    private func free(_ name: PortName, if isMeant: (NameRegistration) -> Bool) -> Bool {
        // In a forked child the lock may be held by a thread that the child does not have.
        if holderForkCount.load(ordering: .relaxed) != sysForkCount() { return false }
        let registration = held.withLock { held -> NameRegistration? in
            guard let found = held[name], !found.isInherited, isMeant(found) else { return nil }
            return held.removeValue(forKey: name)
        }
        registration?.remove()
        return registration != nil
    }

    /// The record that this process writes into the file of a name that it holds.
    static func record(_ address: PortAddress) throws(PortError) -> NameRecord {
        guard let record = NameRecord(of: address) else {
            throw PortError(.systemCallFailed, subject: .path(address.path))
        }
        return record
    }

    /// The port's address. If its socket was removed, with the directory or alone, or was replaced, the port gets
    /// another.
    private static func reachableAddress(of port: MachPort, in directory: PortDirectory) throws(PortError)
        -> PortAddress
    {
        let address = try port.localPort.address(in: directory)
        guard !directory.sharing.isShared || directory.holds(address) else {
            throw PortError(.nameNotAllowed, subject: .path(address.path, .addressElsewhere))
        }
        do throws(SystemError) {
            if try port.localPort.isReachable(at: address) { return address }
        } catch {
            if error.code != ENOTDIR { throw PortError(error, subject: .path(address.path)) }
        }
        return try port.localPort.renewAddress(address, in: directory)
    }

    /// Removes the entry of a name that was freed; the name may be held again by now.
    private func forget(_ name: PortName, _ registration: NameRegistration) {
        held.withLock { held in
            if held[name] === registration { held[name] = nil }
        }
    }
}

// MARK: - CheckIn

extension PortNameServer {
    /// Gives a port the name and the socket that a supervisor, such as systemd, declared for this process.
    /// `bootstrap_check_in`.
    ///
    /// The supervisor listens before this process runs, and starts it when the first client connects; that client's
    /// messages wait for the port. The supervisor goes on listening when the port ends, so clients are never refused.
    /// See `Docs/Activation.md`.
    ///
    /// A process finds its socket by its path, which is `declared/` and the name's file name in the directory of this
    /// object; or else, among the sockets elsewhere, by the name that the supervisor gave the descriptor
    /// (`FileDescriptorName=`). Each socket can be used once. All inherited descriptors become close-on-exec at the
    /// first call.
    ///
    /// - Parameters:
    ///   - port: a port that has no address yet: no name, and sent to no other process.
    ///   - name: the declared name.
    /// - Throws: ``/MessagePort/PortError/Code/nameNotDeclared`` when this process was started without a socket for the
    ///   name: it may register the name instead. ``/MessagePort/PortError/Code/alreadyCheckedIn``.
    ///   ``/MessagePort/PortError/Code/activationInvalid`` when the descriptor is no listening socket of packets, the
    ///   environment cannot be understood, or the port has an address. ``/MessagePort/PortError/Code/nameTaken`` and
    ///   all other errors as ``register(_:name:)``: then the call can be repeated.
    public func checkIn(_ port: MachPort, name: String) throws(PortError) {
        do throws(PortError) {
            try port.localPort.checkProcess()
            guard port.isValid else { throw PortError(.invalidPort) }
            let portName = try PortName(name)
            let directory = try openDirectory()
            _ = try directory.declared(makes: false)  // checks that it is trusted, if it is there
            try InheritedSockets.withSocket(for: portName, declaredAt: directory.declaredPath(of: portName)) {
                (descriptor, address) throws(PortError) in
                try hold(portName, for: port, in: directory) { (write) throws(PortError) in
                    // Clients can connect already, so the name may be seen before the port listens.
                    try write(address)
                    let copy = try PortError.converting(sysDuplicate(descriptor))
                    guard try port.localPort.listen(on: Listener(inherited: copy, path: address.path)) != nil else {
                        throw PortError(.activationInvalid, subject: .reason(.hasAddress))
                    }
                }
            }
        } catch {
            throw error.at(name: name)
        }
    }
}

// MARK: - Locking

// A file that is locked and names no owner belongs to a process that is about to write its record, to give the name up,
// or to sweep the file away. Each needs a few system calls. So a process that finds such a file tries again, soon at
// first and then less often, and in the end accepts what it finds.
extension PortNameServer {
    /// Locks a name's file. Before that calls `prepare`, when the name seems to be free.
    ///
    /// - Returns: the file, with the contents that a dead owner left.
    /// - Throws: `nameTaken`, with the owner, if the file names one; what `prepare` throws.
    static func lock(
        _ name: PortName, in names: TrustedDirectory, preparing prepare: () throws(PortError) -> Void = {}
    ) throws(PortError) -> LockedFile {
        var (owner, pause) = (Int32?.none, Tuning.firstPause)
        for pauses in 0...Tuning.pauseCount {
            switch try attempt(name, in: names, preparing: prepare) {
            case .locked(let file): return file
            case .held(let contents): owner = NameRecord(contents: contents)?.owner
            }
            // A dead owner's record is still there for a moment when another has the lock.
            if let owner, owner == sysProcessID() || !sysHasEnded(owner) { break }
            if pauses == Tuning.pauseCount { break }
            ThreadEvent().wait(until: .after(pause))
            pause *= 2
        }
        throw PortError(.nameTaken, subject: .name(name.string), owner: owner)
    }

    /// One attempt. In a shared directory no other user can lock a user's file; the directory's owner and root remove
    /// what a dead process has left.
    private static func attempt(
        _ name: PortName, in names: TrustedDirectory, preparing prepare: () throws(PortError) -> Void
    ) throws(PortError) -> LockedFile.LockOutcome {
        do throws(PortError) {
            return try LockedFile.acquire(name.fileName, in: names, preparing: prepare)
        } catch {
            guard error.code == .directoryUntrusted,
                let file = try? LockedFile.signedContents(name.fileName, in: names),
                !sysIsOwnUser(file.user)
            else { throw error }
            let denied = NameRules.denials(in: names)(file.user, name) ? file.user : nil
            if LockedFile.removeForeign(name.fileName, in: names, deniedTo: denied) {
                return try LockedFile.acquire(name.fileName, in: names, preparing: prepare)
            }
            return .held(contents: file.contents)
        }
    }
}
