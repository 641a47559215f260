// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem
import Synchronization

/// What a name's file says, when the name is held.
struct NameEntry: Sendable {
    let registration: PortNameServer.Registration
    let socketPath: String

    /// Reads a file.
    ///
    /// - Returns: nil when no process holds the name, its record is not written yet, or the file cannot be opened or
    ///   read, for whatever reason: files of this library can be, and any process of the user can put another there.
    /// - Throws: `descriptorLimit`, `systemCallFailed` when this process has no descriptor or memory left, or the
    ///   system refuses the locks of the directory: then nothing is known of any name.
    static func read(at file: String, in names: TrustedDirectory) throws(PortError) -> NameEntry? {
        guard let name = PortName(fileName: file) else { return nil }
        do throws(PortError) {
            guard try LockedFile.isLocked(file, in: names), let held = try NameRules.contents(of: name, in: names),
                let record = NameRecord(contents: held.contents)
            else { return nil }
            return NameEntry(registration: .init(name, record), socketPath: record.socketPath)
        } catch {
            if error.isOwnShortage { throw error }
            _ = try names.fileLock(decides: false)
            return nil
        }
    }

    /// Reads all files of the directory that may be names; none when it was removed. The keys are ASCII, so that each
    /// is equal to itself alone.
    static func all(in names: TrustedDirectory) throws(PortError) -> [String: NameEntry] {
        let files = try PortError.converting(sysList(in: names.raw))
        var entries: [String: NameEntry] = [:]
        for file in files where PortName(fileName: file) != nil { entries[file] = try read(at: file, in: names) }
        return entries
    }

    /// Whether two entries are of the same port under the same name.
    func isSame(as other: NameEntry) -> Bool {
        registration.owner == other.registration.owner && registration.since == other.registration.since
            && socketPath.utf8.elementsEqual(other.socketPath.utf8)
    }
}

extension NameRecord {
    /// Reads the record in a name's file, whether or not the name is held, and which user owns the file.
    ///
    /// - Returns: nil when there is no such file, or it is no record, or it cannot be opened or read.
    /// - Throws: `directoryUntrusted` when it is no regular file of this user alone; `descriptorLimit`,
    ///   `systemCallFailed` when this process has no descriptor or memory left.
    static func read(
        of name: PortName, in names: TrustedDirectory
    ) throws(PortError) -> (record: NameRecord, user: UInt32)? {
        do throws(PortError) {
            guard let file = try NameRules.contents(of: name, in: names),
                let record = NameRecord(contents: file.contents)
            else { return nil }
            return (record, file.user)
        } catch {
            if error.isOwnShortage || error.code == .directoryUntrusted { throw error }
            return nil
        }
    }
}

/// A name that this process holds. Its port retains it, and frees it when the port ends.
final class NameRegistration: PortAttachment {
    private struct State: ~Copyable {
        var file: LockedFile?
        /// Retained until the name is freed, at the port's end at the latest.
        var port: LocalPort?
        /// The number that `LocalPort.cancelEnding` needs.
        var ending: Int?
    }

    private let state: Mutex<State>
    private let owner: ObjectIdentifier  // immutable; the port, which has the name no longer than it lives
    private let forkGuard = ForkGuard()  // immutable
    private let whenFreed: @Sendable (NameRegistration) -> Void  // immutable

    /// Makes the name end with the port.
    init(_ file: consuming LockedFile, for port: LocalPort, whenFreed: @escaping @Sendable (NameRegistration) -> Void) {
        owner = ObjectIdentifier(port)
        state = Mutex(State(file: consume file))
        self.whenFreed = whenFreed
        let ending = port.whenDead(attachment: self) { [self] in
            remove()
            whenFreed(self)
        }
        // If the port is dead already, `whenDead` has freed the name.
        if let ending { state.withLock { ($0.port, $0.ending) = (port, ending) } }
    }

    /// Whether the name belongs to this port.
    func belongs(to port: LocalPort) -> Bool { owner == ObjectIdentifier(port) }

    /// Whether the name is free again, because the port has ended, or goes to another process.
    var isFreed: Bool { state.withLock { $0.file == nil } }

    /// Whether this is a forked child's copy: the name belongs to its parent.
    var isInherited: Bool { forkGuard.isInherited }

    /// Whether its file can be found: no process has removed it, or the directory, without the lock.
    func checkReachable() -> Bool { state.withLock { $0.file?.checkReachable() ?? false } }

    func pack() throws(PortError) -> FileSnapshot? {
        try state.withLock { (state) throws(PortError) in try state.file?.packed() }
    }

    func leave() {
        let (port, _) = state.withLock { ($0.port.take(), $0.ending.take()) }
        let file = state.withLock { $0.file.take() }
        if let file { file.leave() }
        whenFreed(self)
        withExtendedLifetime(port) {}  // released without the lock
    }

    /// Frees the name.
    func remove() {
        let (port, ending) = state.withLock { ($0.port.take(), $0.ending.take()) }
        let file = state.withLock { $0.file.take() }
        if let file { file.remove() }
        if let ending { port?.cancelEnding(ending) }
    }
}
