// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
public import MessagePort
import PortSystem
import Synchronization

extension PortError.StaticReason {
    fileprivate static let addressElsewhere = Self(
        "the port has an address that other users cannot reach: register it in the shared directory first")
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
        try port.core.checkProcess()
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

    /// Locks a name, has `body` write its record, and makes the name end with the port.
    ///
    /// - Parameters:
    ///   - name: the name.
    ///   - port: the port.
    ///   - directory: the directory in which the name is.
    ///   - prepare: called before the name is locked, when it seems to be free.
    ///   - body: calls its argument with the port's address.
    /// - Throws: as `take`; what `prepare` and `body` throw. The name is not held then.
    func hold(
        _ name: PortName, for port: MachPort, in directory: PortDirectory,
        preparing prepare: () throws(PortError) -> Void = {},
        _ body: (_ write: (PortAddress) throws(PortError) -> Void) throws(PortError) -> Void
    ) throws(PortError) {
        if try !NameRules.allow(sysUserID(), name, in: directory.names) {
            throw PortError(.nameNotAllowed, subject: .name(name.string))
        }
        if directory.beginSweepOfNames() { directory.sweepNames() }
        let file = try Self.take(name, in: directory.names, preparing: prepare)
        do throws(PortError) {
            try file.cut()  // a dead owner's record is void
            try body { (address) throws(PortError) in try file.write(try Self.record(address).contents) }
        } catch {
            file.remove()
            throw error
        }
        let registration = HeldName(file, for: port.core) { [weak self] in self?.forget(name, $0) }
        holderForkCount.store(sysForkCount(), ordering: .relaxed)
        let old = held.withLock { $0.updateValue(registration, forKey: name) }
        withExtendedLifetime(old) {}
        guard port.isValid else {
            forget(name, registration)  // the port's end may have come before the entry
            throw PortError(.invalidPort, subject: .name(name.string))
        }
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
    func free(_ name: PortName, of port: LocalPort) -> Bool {
        free(name) { $0.belongs(to: port) }
    }

    /// Whether this object holds a name for the port, and the name can be found.
    func holds(_ name: PortName, for port: LocalPort) -> Bool {
        guard let registration = held.withLock({ $0[name] }) else { return false }
        return registration.belongs(to: port) && registration.isReachable
    }

    private func free(_ name: PortName, if isMeant: (HeldName) -> Bool) -> Bool {
        // In a forked child the lock may be held by a thread that the child does not have.
        if holderForkCount.load(ordering: .relaxed) != sysForkCount() { return false }
        let registration = held.withLock { held -> HeldName? in
            guard let found = held[name], !found.isInherited, isMeant(found) else { return nil }
            return held.removeValue(forKey: name)
        }
        registration?.remove()
        return registration != nil
    }

    /// The record that this process writes into the file of a name that it holds.
    static func record(_ address: PortAddress) throws(PortError) -> NameRecord {
        let since = MonotonicInstant.now.nanoseconds / 1_000_000_000
        guard let record = NameRecord(owner: sysProcessID(), since: since, socketPath: address.path) else {
            throw PortError(.systemCallFailed, subject: .path(address.path))
        }
        return record
    }

    /// The port's address. If its socket was removed, with the directory or alone, or was replaced, the port gets
    /// another.
    private static func reachableAddress(of port: MachPort, in directory: PortDirectory) throws(PortError)
        -> PortAddress
    {
        let address = try port.core.address(in: directory)
        guard !directory.sharing.isShared || directory.holds(address) else {
            throw PortError(.nameNotAllowed, subject: .path(address.path, .addressElsewhere))
        }
        do throws(SystemError) {
            if try port.core.isReachable(at: address) { return address }
        } catch {
            if error.code != ENOTDIR { throw PortError(error, subject: .path(address.path)) }
        }
        return try port.core.renewAddress(address, in: directory)
    }

    /// Removes the entry of a name that was freed; the name may be held again by now.
    private func forget(_ name: PortName, _ registration: HeldName) {
        held.withLock { held in
            if held[name] === registration { held[name] = nil }
        }
    }
}
