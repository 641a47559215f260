// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import Synchronization

extension LocalMessagePort {
    /// Held while ports of this process get their names, so that when a name is found taken, its port is registered
    /// completely.
    private static let naming = Mutex(())

    /// Its name; after its end, the one that it had. Nil when it has none. `CFMessagePortGetName`.
    public var name: String? { port.core.isInherited ? nil : heldName.withLock { $0 } }

    /// Gives the port another name, its first one, or none. `CFMessagePortSetName`.
    ///
    /// It stays the same port: its queue, the loops that serve it, and the rights to it stay as they are. The old name
    /// is free when this returns. At no moment is the port without a name. The name that it has already changes
    /// nothing.
    ///
    /// - Parameter name: 1 to 128 bytes of UTF-8, any but NUL; nil for none.
    /// - Throws: as ``PortNameServer/register(_:name:)``. Then the port has its old name.
    public func setName(_ name: String?) throws(PortError) {
        try port.core.checkProcess()
        guard let name else { return giveNameUp() }
        let newName = try PortName(name)
        try Self.naming.withLock { (_) throws(PortError) in
            // The name may have been unregistered, or its file removed.
            if newName == oldName, nameServer.holds(newName, for: port.core) { return }
            try nameServer.register(port, name: name)
            if let oldName, oldName != newName { nameServer.free(oldName, of: port.core) }
            heldName.withLock { $0 = name }
        }
    }

    /// Checks in for the name and the socket that a supervisor declared for this process.
    /// ``PortNameServer/checkIn(_:name:)``.
    func checkIn(as name: String) throws(PortError) {
        try Self.naming.withLock { (_) throws(PortError) in
            try nameServer.checkIn(port, name: name)
            heldName.withLock { $0 = name }
        }
    }

    /// The port of this process with a name; a new one when no live port has it. `CFMessagePortCreateLocal`.
    ///
    /// The first call makes the port: the handler of a later call is dropped, as CFMessagePort drops callback and
    /// context when it sets `*shouldFreeInfo` to true.
    ///
    /// - Parameters:
    ///   - name: 1 to 128 bytes of UTF-8, any but NUL.
    ///   - nameServer: where the name is registered.
    ///   - queueLimit: how many messages may wait in the queue of a new port.
    ///   - handler: called for each message of a new port.
    /// - Returns: the port, and whether it is new.
    /// - Throws: as ``PortNameServer/register(_:name:)``: ``/MessagePort/PortError/Code/nameTaken`` when another
    ///   process has the name, or a port of this process that is no ``LocalMessagePort``.
    public static func shared(
        name: String, nameServer: PortNameServer = .shared, queueLimit: Int = MachPort.defaultQueueLimit,
        handler: @escaping Handler
    ) throws(PortError) -> (port: LocalMessagePort, isNew: Bool) {
        let made = LocalMessagePort(nameServer: nameServer, queueLimit: queueLimit, handler: handler)
        let portName = try PortName(name)
        let existing = try naming.withLock { (_) throws(PortError) -> LocalMessagePort? in
            do throws(PortError) {
                try nameServer.register(made.port, name: name)
            } catch {
                if error.code == .nameTaken, let known = try? nameServer.ownPort(named: portName)?.owner {
                    return known as? LocalMessagePort
                }
                throw error
            }
            made.heldName.withLock { $0 = name }
            return nil
        }
        if let existing { return (existing, false) }
        return (made, true)
    }

    private func giveNameUp() {
        Self.naming.withLock { _ in
            if let oldName { nameServer.free(oldName, of: port.core) }
            heldName.withLock { $0 = nil }
        }
    }

    private var oldName: PortName? { name.flatMap { try? PortName($0) } }
}
