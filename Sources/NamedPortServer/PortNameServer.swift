// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// There is no server process. A name is a file in the directory of names: its lock says that the name is held, and its
// contents tell where the port listens. The kernel drops the lock when the owner ends, in whatever way, so a name is free
// the moment its owner is gone. A port listens before its name is written, so a name that can be seen never refuses.

public import MessagePort
import PortSystem
import Synchronization

/// Registers ports under names and looks them up, between the processes of one user. `NSMessagePortNameServer`,
/// `bootstrap_check_in`, `bootstrap_look_up`.
///
/// - Important: Thread safety: any thread.
public final class PortNameServer: Sendable {
    /// A name and who holds it.
    public struct Registration: Hashable, Sendable {
        /// The name.
        public let name: String
        /// The process that holds it.
        public let owner: Int32
    }

    /// A name that this process holds. Its port keeps it, and frees it at its end.
    private final class Held: Sendable {
        private struct State: ~Copyable {
            var file: LockedFile?
            weak var port: PortCore?
            /// What `PortCore.cancelEnding` needs.
            var ending: Int?
        }

        private let state: Mutex<State>

        /// Has the name end with the port.
        init(_ file: consuming LockedFile, for port: PortCore, whenFreed: @escaping @Sendable (Held) -> Void) {
            state = Mutex(State(file: consume file))
            let ending = port.whenDead { [self] in
                remove()
                whenFreed(self)
            }
            state.withLock { state in
                state.port = port
                state.ending = ending
            }
        }

        /// Frees the name.
        func remove() {
            let (port, ending) = state.withLock { ($0.port, $0.ending.take()) }
            let file = state.withLock { $0.file.take() }
            if let file { file.remove() }
            if let ending { port?.cancelEnding(ending) }
        }
    }

    /// The names of this process's user: in `$XDG_RUNTIME_DIR/swift-ports`, else in `swift-ports-<user id>` in the
    /// temporary directory.
    public static let shared = PortNameServer(directory: nil)

    private let directory: PortDirectory?  // immutable; nil: the user's, opened again when it was replaced
    private let held = Mutex<[PortName: Held]>([:])

    private init(directory: PortDirectory?) {
        self.directory = directory
    }

    /// Names of their own, in a private directory.
    ///
    /// - Parameter directory: an absolute path. The directory is made if it is not there; its parent must be.
    /// - Throws: ``PortError/Code/directoryUntrusted`` when it is a link, no directory, another user's, or open to others, or
    ///   when the path is not absolute or holds a NUL;
    ///   ``PortError/Code/descriptorLimit``; ``PortError/Code/systemCallFailed``.
    public convenience init(directory: String) throws(PortError) {
        self.init(directory: try PortDirectory.open(path: directory))
    }

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
        switch try LockedFile.take(portName.fileName, in: directory.names) {
        case .held(let contents):
            throw PortError(.nameTaken, subject: .name(name), owner: NameRecord(contents: contents)?.owner)
        case .locked(let file):
            do throws(PortError) {
                let address = try port.core.address(in: directory)
                try file.write(try Self.record(address).contents)
            } catch {
                file.remove()
                throw error
            }
            let registration = Held(file, for: port.core) { [weak self] in self?.forget(portName, $0) }
            held.withLock { $0[portName] = registration }
            guard port.isValid else {
                forget(portName, registration)  // the port's end may have come before the entry
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

    /// The right to the port with a name. The same port gives the same right each time.
    ///
    /// - Parameter name: the name.
    /// - Returns: a right to a port of this process, reached in memory, or of another.
    /// - Throws: ``PortError/Code/nameUnknown`` when no live port has the name now; ``PortError/Code/sendTimedOut`` when too
    ///   many clients wait to be accepted by it; ``PortError/Code/nameEmpty``, ``PortError/Code/nameTooLong``,
    ///   ``PortError/Code/nameHasNUL``; ``PortError/Code/peerRefused``;
    ///   ``PortError/Code/directoryUntrusted``, ``PortError/Code/descriptorLimit``, ``PortError/Code/systemCallFailed``.
    public func lookUp(_ name: String) throws(PortError) -> SendRight {
        let portName = try PortName(name)
        let directory = try openDirectory()
        guard let contents = try LockedFile.contents(portName.fileName, in: directory.names),
            let record = NameRecord(contents: contents),
            let right = try RightsTable.shared.right(to: PortAddress(path: record.socketPath))
        else { throw PortError(.nameUnknown, subject: .name(name)) }
        return right
    }

    /// The names that are held now, in alphabetical order.
    ///
    /// - Returns: each with its owner.
    /// - Throws: ``PortError/Code/directoryUntrusted``, ``PortError/Code/descriptorLimit``,
    ///   ``PortError/Code/systemCallFailed``.
    public func list() throws(PortError) -> [Registration] {
        let names = try openDirectory().names
        let files: [String]
        do throws(SystemError) {
            files = try sysList(names.path)
        } catch {
            throw PortError(error)
        }
        var registrations: [Registration] = []
        for file in files {
            guard let name = PortName(fileName: file), let owner = try Self.owner(of: file, in: names) else { continue }
            registrations.append(Registration(name: name.string, owner: owner))
        }
        return registrations.sorted { $0.name < $1.name }
    }

    /// Who holds the name of a file; nil when nobody does, or it is no file of ours.
    private static func owner(of file: String, in names: TrustedDirectory) throws(PortError) -> Int32? {
        do throws(PortError) {
            guard try LockedFile.isLocked(file, in: names), let contents = try LockedFile.contents(file, in: names)
            else { return nil }
            return NameRecord(contents: contents)?.owner
        } catch {
            if error.code == .directoryUntrusted { return nil }
            throw error
        }
    }

    func openDirectory() throws(PortError) -> PortDirectory {
        if let directory { return directory }
        return try .user()
    }

    private static func record(_ address: PortAddress) throws(PortError) -> NameRecord {
        let since = MonotonicInstant.now.nanoseconds / 1_000_000_000
        guard let record = NameRecord(owner: sysProcessID(), since: since, socketPath: address.path) else {
            throw PortError(.systemCallFailed, subject: .path(address.path))
        }
        return record
    }

    /// The name was freed; it may be held anew by now.
    private func forget(_ name: PortName, _ registration: Held) {
        held.withLock { held in
            if held[name] === registration { held[name] = nil }
        }
    }
}
