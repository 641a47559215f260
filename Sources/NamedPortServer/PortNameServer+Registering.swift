// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
public import MessagePort
import PortSystem
import Synchronization

extension PortNameServer {
    /// Gives a port a name. A port may have several. The name is free again when the port becomes invalid, or this process
    /// ends; it does not depend on this object's life.
    ///
    /// - Parameters:
    ///   - port: the port; from now on other processes can reach it.
    ///   - name: 1 to 128 bytes of UTF-8, any but NUL.
    /// - Throws: ``PortError/Code/nameTaken``; ``PortError/Code/nameEmpty``, ``PortError/Code/nameTooLong``,
    ///   ``PortError/Code/nameHasNUL``; ``PortError/Code/invalidPort``; ``PortError/Code/directoryUntrusted``,
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``. The name is not held then.
    public func register(_ port: MachPort, name: String) throws(PortError) {
        guard port.isValid else { throw PortError(.invalidPort) }
        let portName = try PortName(name)
        let directory = try openDirectory()
        try hold(portName, for: port, in: directory) { (write) throws(PortError) in
            let address = try port.core.address(in: directory)
            try Self.checkReachable(address)
            try write(address)
        }
    }

    /// Takes a name, has `body` write its record, and has the name end with the port.
    func hold(
        _ name: PortName, for port: MachPort, in directory: PortDirectory,
        _ body: (_ write: (PortAddress) throws(PortError) -> Void) throws(PortError) -> Void
    ) throws(PortError) {
        switch try LockedFile.take(name.fileName, in: directory.names) {
        case .held(let contents):
            throw PortError(.nameTaken, subject: .name(name.string), owner: NameRecord(contents: contents)?.owner)
        case .locked(let file):
            do throws(PortError) {
                try body { (address) throws(PortError) in try file.write(try Self.record(address).contents) }
            } catch {
                file.remove()
                throw error
            }
            let registration = HeldName(file, for: port.core) { [weak self] in self?.forget(name, $0) }
            held.withLock { $0[name] = registration }
            guard port.isValid else {
                forget(name, registration)  // the port's end may have come before the entry
                throw PortError(.invalidPort)
            }
        }
    }

    /// Frees a name that this process holds. The port goes on; rights to it stay good.
    ///
    /// - Parameter name: the name.
    /// - Returns: false when this object holds no such name.
    @discardableResult
    public func unregister(_ name: String) -> Bool {
        guard let portName = try? PortName(name) else { return false }
        let registration = held.withLock { $0.removeValue(forKey: portName) }
        registration?.remove()
        return registration != nil
    }

    private static func record(_ address: PortAddress) throws(PortError) -> NameRecord {
        let since = MonotonicInstant.now.nanoseconds / 1_000_000_000
        guard let record = NameRecord(owner: sysProcessID(), since: since, socketPath: address.path) else {
            throw PortError(.systemCallFailed, subject: .path(address.path))
        }
        return record
    }

    /// A port keeps the address that it has. When that went away with its directory, a name for it would lead nowhere.
    private static func checkReachable(_ address: PortAddress) throws(PortError) {
        do throws(SystemError) {
            if try sysStatus(atPath: address.path) == nil { throw SystemError(ENOENT) }
        } catch {
            throw PortError(error, subject: .path(address.path))
        }
    }

    /// The name was freed; it may be held anew by now.
    private func forget(_ name: PortName, _ registration: HeldName) {
        held.withLock { held in
            if held[name] === registration { held[name] = nil }
        }
    }
}
