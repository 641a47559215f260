// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortSystem

/// A connection to a port for a program that other code than ``PortWorker`` starts, such as `posix_spawn(3)` or
/// Foundation's `Process`. The program finds the port with ``SendRight/bootstrap()``, and checks in as a worker does.
///
/// Make it for a port, have the program inherit ``descriptor``, give it the variable of ``environment(inheritedAs:)``,
/// and call ``connect(process:)`` when it was started:
///
/// ```swift
/// let bootstrap = try PortBootstrap(to: port)
/// process.standardInput = FileHandle(fileDescriptor: bootstrap.descriptor)
/// process.environment = bootstrap.environment(inheritedAs: 0).merging(ProcessInfo.processInfo.environment) { $1 }
/// try process.run()
/// try bootstrap.connect(process: process.processIdentifier)
/// ```
///
/// It is for one program. The check-in comes to the port, as a message with the id ``MachMessage/checkIn`` whose reply
/// port is the program's own. The end of the program is not noticed here: its starter waits for it. When the program has
/// ended, or never used the descriptor, the port loses a client, as it does with any other.
///
/// A value that is released before it is connected closes the connection: in the program the right is a dead name.
///
/// - Important: Thread safety: any thread.
public struct PortBootstrap: ~Copyable, Sendable {
    private let port: MachPort
    private let address: PortAddress?
    private let portsEnd: SharedDescriptor
    private let programsEnd: SharedDescriptor
    private let inode: UInt64

    /// Makes a connection to a port, which is retained until the program is connected. The port gets an address if it
    /// has none, so that the program can pass the right on; without a usable directory it gets none.
    ///
    /// - Parameter port: a port of this process.
    /// - Throws: ``PortError/Code/invalidPort`` when the port is invalid; ``PortError/Code/forkedProcess``;
    ///   ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``.
    public init(to port: MachPort) throws(PortError) {
        if !port.isValid { throw PortError(.invalidPort).at(port.localPort.label) }
        _ = try port.localPort.openSockets()
        let ends = try PortError.converting(sysPacketSocketPair())
        let inode = UInt64(try PortError.converting(sysStatus(ends.1.rawValue)).inode)
        let address = try? port.localPort.address()
        (self.port, self.address, self.inode) = (port, address, inode)
        (portsEnd, programsEnd) = ends
    }

    /// The descriptor that the program is to inherit. It is this value's, which closes it; in this process it is
    /// close-on-exec, so that only the intended program inherits it.
    public var descriptor: CInt { programsEnd.rawValue }

    /// What the program's environment must have besides: one variable, `SWIFT_PORT_BOOTSTRAP`.
    ///
    /// - Parameter number: the descriptor's number in the program, from 3 on; or 0, where only the standard descriptors
    ///   can be passed on, as with Foundation's `Process`: then the program has `/dev/null` as its standard input. 1, 2
    ///   and negative numbers trap.
    /// - Returns: the variable, and its value.
    public borrowing func environment(inheritedAs number: CInt = 3) -> [String: String] {
        if !Bootstrap.isPossible(number) {
            fatalError("A program cannot inherit its bootstrap port as descriptor \(number). Choose 0, or 3 or more.")
        }
        let suffix = address.map { ":" + $0.path } ?? ""
        return [Bootstrap.variable: "\(number):\(inode)" + suffix]
    }

    /// Connects the program, once it was started. This process no longer has the program's end then, so that the port
    /// notices the program's.
    ///
    /// - Parameter process: the process id of the program, for which its starter has not waited yet. The kernel does not
    ///   name the user of such a connection: this is the ``MachMessage/sender`` of the program's messages, and the process
    ///   whose usage is limited.
    /// - Throws: ``PortError/Code/invalidPort`` when the port has ended; ``PortError/Code/descriptorLimit``,
    ///   ``PortError/Code/systemCallFailed``. The program's right is a dead name then.
    public consuming func connect(process: Int32) throws(PortError) {
        // Not ended, or not waited for by its starter yet: the number is its own.
        let launched = (try? LaunchedProcess.watching(child: process)) ?? nil
        try connect(process: process, watchedBy: launched)
    }

    consuming func connect(process: Int32, watchedBy launched: LaunchedProcess?) throws(PortError) {
        let localPort = port.localPort
        let program = PeerIdentity(processID: process, userID: sysUserID(), groupID: sysGroupID())
        let connection = try SocketConnection(
            portsEnd, port: localPort, peer: program, opened: .launched(launched, portsEnd))
        try localPort.openSockets().add(connection)
    }
}
