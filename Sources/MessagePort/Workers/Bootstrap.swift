// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem
import Synchronization

// How a child process finds the port of its parent: it inherits one end of a connected pair of SOCK_SEQPACKET sockets,
// and a variable of its environment has the descriptor's number, the socket's inode, so that no other descriptor is
// mistaken for it, and the port's address, so that the right can be passed on. See Docs/CheckIn.md and
// Docs/WireFormat.md.
enum Bootstrap {
    /// The variable of the environment: `<descriptor>:<inode>`, both in decimal, and `:<address>` if there is one.
    static let variable = "SWIFT_PORT_BOOTSTRAP"
    /// The descriptor in the child: the one after standard error.
    static let descriptor: CInt = 3
    /// The only one below that: the first program's code is later than `bootstrap.c`, which moves it.
    static let standardInput: CInt = 0

    private static let adopted = Mutex<SendRight?>(nil)

    /// The right to the parent's port; nil when there is none.
    static func right() throws(PortError) -> SendRight? {
        try adopted.withLock { (adopted) throws(PortError) -> SendRight? in
            if adopted == nil, let value = sysEnvironment(variable) { adopted = try adopt(value) }
            return adopted
        }
    }

    /// Takes over the descriptor that the variable names, if it is the intended one.
    ///
    /// - Returns: the right; nil when it is not: the variable came from a worker that started this process, and the
    ///   descriptor did not.
    static func adopt(_ value: String) throws(PortError) -> SendRight? {
        let parts = value.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count > 1, let number = CInt(parts[0]), isPossible(number), let inode = UInt64(parts[1]),
            let address = parts.count == 2 ? .nowhere : PortAddress(received: String(parts[2]))
        else {
            throw PortError(.bootstrapInvalid, subject: .reason(.notBootstrapVariable))
        }
        guard let descriptor = try inherited(number), try isMeant(descriptor, inode: inode) else { return nil }
        let socket = SharedDescriptor(connection: FileDescriptor(owning: descriptor))
        let port = RemotePort(address, over: try SocketConnection(socket, port: nil, at: address))
        if address != .nowhere { RightsTable.shared.enter(port, at: address) }
        return SendRight(port)
    }

    /// Whether a program can inherit a bootstrap socket under the number: not in place of standard output or error.
    static func isPossible(_ number: CInt) -> Bool { number == standardInput || number >= descriptor }

    /// Where the descriptor is that was inherited under the number; nil when it was none.
    private static func inherited(_ number: CInt) throws(PortError) -> CInt? {
        if number != standardInput { return number }
        do throws(SystemError) {
            return try sysBootstrapInput()
        } catch {
            throw PortError(.bootstrapInvalid, system: error)
        }
    }

    /// Whether a descriptor is the intended one; then this makes it close-on-exec, as it is from the start where
    /// `bootstrap.c` has seen the variable.
    private static func isMeant(_ descriptor: CInt, inode: UInt64) throws(PortError) -> Bool {
        let user: uid_t
        do throws(SystemError) {
            guard try sysStatus(descriptor).inode == inode, try sysIsPacketSocket(descriptor) else { return false }
            user = try sysPeerCredentials(descriptor).user
            if sysIsOwnUser(user) { try sysCloseOnExec(descriptor) }
        } catch {
            if error.code == EBADF || error.code == ENOTSOCK { return false }
            throw PortError(.bootstrapInvalid, system: error)
        }
        if sysIsOwnUser(user) { return true }
        throw PortError(.bootstrapInvalid, subject: .reason(.anotherUsersBootstrap))
    }
}

extension PortError.StaticReason {
    fileprivate static let notBootstrapVariable = Self("the variable is not <descriptor>:<inode>:<address>")
    fileprivate static let anotherUsersBootstrap = Self("the other end belongs to another user")
}

extension MachMessage {
    /// The id of a worker's first message, whose reply port is the worker's own: `kCheckinMessage` of listings 3-13 and
    /// 3-18 of Apple's Run Loops chapter.
    public static let checkIn: Int32 = 100
}

extension SendRight {
    /// Reports to the launcher of this worker that it runs, and how to reach it. Listing 3-15, `sendCheckinMessage:`.
    ///
    /// Schedule the port first, so that it answers from the beginning. Checking in again sends an ordinary message.
    ///
    /// - Parameters:
    ///   - port: the worker's port; the launcher gets a right to it.
    ///   - components: what else the launcher should know.
    ///   - limit: how long to wait for room. A first message finds room at once.
    /// - Throws: as `send(_:within:)`; ``PortError/Code/deadName`` when the launcher is gone, or has abandoned this
    ///   worker.
    @available(*, noasync, message: "It blocks the thread. Write `await` to suspend the task instead.")
    public func checkIn(
        _ port: MachPort, components: [MachMessage.Component] = [], within limit: Duration = .seconds(10)
    ) throws(PortError) {
        try send(Self.checkInMessage(port, components), within: limit)
    }

    /// Reports to the launcher of this worker that it runs, and how to reach it, and suspends the task while there is
    /// no room.
    ///
    /// Otherwise as the blocking form.
    ///
    /// - Parameters:
    ///   - port: the worker's port; the launcher gets a right to it.
    ///   - components: what else the launcher should know.
    ///   - limit: how long to wait for room. A first message finds room at once.
    /// - Throws: what the blocking form throws; ``PortError/Code/cancelled``: the launcher was not notified.
    nonisolated(nonsending) public func checkIn(
        _ port: MachPort, components: [MachMessage.Component] = [], within limit: Duration = .seconds(10)
    ) async throws(PortError) {
        try await send(Self.checkInMessage(port, components), within: limit)
    }

    private static func checkInMessage(_ port: MachPort, _ components: [MachMessage.Component]) -> MachMessage {
        MachMessage(id: MachMessage.checkIn, components: components, replyPort: port.makeSendRight())
    }

    /// The right to the port of the process that launched this one, as a ``PortWorker`` or with a ``PortBootstrap``.
    /// `bootstrap_port` of Mach.
    ///
    /// The right is to that one port, over a connection that this process inherited, and the same each time. It can be
    /// sent on, as any right: another process connects to the launcher's port when it uses it. Only where the launcher
    /// has no directory for its sockets, another process gets a dead name. Programs that this process starts do not
    /// inherit the right.
    ///
    /// - Returns: the right; nil when this process was not launched in this way. A process that a worker started is
    ///   none: it has the variable of the environment, and not the descriptor.
    /// - Throws: ``PortError/Code/bootstrapInvalid`` when the variable cannot be read, when the other end belongs to
    ///   another user, or when the kernel refuses: the descriptor is left alone.
    public static func bootstrap() throws(PortError) -> SendRight? {
        try Bootstrap.right()
    }
}

extension PortError {
    /// For ``Code/workerExited``, ``Code/checkInTimedOut`` and ``Code/workerStillRunning``: which worker.
    public var worker: WorkerIdentity? {
        if case .worker(let worker, _) = subject { worker } else { nil }
    }

    /// For ``Code/workerExited``: how the worker ended.
    public var workerExit: WorkerExit? {
        if case .worker(_, let exit) = subject { exit } else { nil }
    }
}
