// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

public import MessagePort
import PortSystem

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
            try take(name, for: port)
        } catch {
            throw error.at(name: name)
        }
    }

    private func take(_ name: String, for port: MachPort) throws(PortError) {
        try port.core.checkProcess()
        guard port.isValid else { throw PortError(.invalidPort) }
        let portName = try PortName(name)
        let directory = try openDirectory()
        _ = try directory.declared(makes: false)  // checks that it is trusted, if it is there
        try InheritedSockets.shared.take(portName, declaredAt: directory.declaredPath(of: portName)) {
            (descriptor, address) throws(PortError) in
            try hold(portName, for: port, in: directory) { (write) throws(PortError) in
                // Clients can connect already, so the name may be seen before the port listens.
                try write(address)
                guard try port.core.listen(on: Self.listener(descriptor, address)) != nil else {
                    throw PortError(.activationInvalid, subject: .reason(.hasAddress))
                }
            }
        }
    }

    private static func listener(_ descriptor: CInt, _ address: PortAddress) throws(PortError) -> Listener {
        do throws(SystemError) {
            return Listener(inherited: try sysDuplicate(descriptor), path: address.path)
        } catch {
            throw PortError(error)
        }
    }
}

extension PortError.StaticReason {
    fileprivate static let hasAddress = Self("the port has an address already: a port checks in before anything else")
}
