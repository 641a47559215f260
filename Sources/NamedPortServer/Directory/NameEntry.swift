// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import MessagePort
import PortSystem

/// What a name's file says, when the name is held.
struct NameEntry: Sendable {
    let registration: PortNameServer.Registration
    let socketPath: String

    init(_ registration: PortNameServer.Registration, socketPath: String) {
        self.registration = registration
        self.socketPath = socketPath
    }

    /// Reads a file.
    ///
    /// - Returns: nil when no process holds the name, its record is not written yet, or the file cannot be opened or
    ///   read, for whatever reason: files of this library can be, and any process of the user can put another there.
    /// - Throws: `descriptorLimit`, `systemCallFailed` when this process has no descriptor or memory left, or the
    ///   system refuses the locks of the directory: then nothing is known of any name.
    static func look(at file: String, in names: TrustedDirectory) throws(PortError) -> NameEntry? {
        guard let name = PortName(fileName: file) else { return nil }
        do throws(PortError) {
            guard try LockedFile.isLocked(file, in: names), let held = try NameRules.contents(of: name, in: names),
                let record = NameRecord(contents: held.contents)
            else { return nil }
            return NameEntry(PortNameServer.Registration(name, record), socketPath: record.socketPath)
        } catch {
            if error.isOwnShortage { throw error }
            _ = try names.fileLock(decides: false)
            return nil
        }
    }

    /// Reads all files of the directory that may be names; none when it was removed. The keys are ASCII, so that each
    /// is equal to itself alone.
    static func all(in names: TrustedDirectory) throws(PortError) -> [String: NameEntry] {
        let files: [String]
        do throws(SystemError) {
            files = try sysList(in: names.raw)
        } catch {
            throw PortError(error)
        }
        var entries: [String: NameEntry] = [:]
        for file in files where PortName(fileName: file) != nil { entries[file] = try look(at: file, in: names) }
        return entries
    }

    /// Whether two entries are of the same port under the same name.
    func isSame(as other: NameEntry) -> Bool {
        registration.owner == other.registration.owner && registration.since == other.registration.since
            && socketPath.utf8.elementsEqual(other.socketPath.utf8)
    }
}

extension NameRecord {
    /// Reads the record in a name's file, whether or not the name is held.
    ///
    /// - Returns: nil when there is no such file, or it is no record, or it cannot be opened or read.
    /// - Throws: `directoryUntrusted` when it is no regular file of this user alone; `descriptorLimit`,
    ///   `systemCallFailed` when this process has no descriptor or memory left.
    static func read(of name: PortName, in names: TrustedDirectory) throws(PortError) -> NameRecord? {
        try readSigned(of: name, in: names)?.record
    }

    /// The same, with the user that owns the file.
    static func readSigned(
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

extension PortError {
    /// Whether this process lacked what it needs to read a file: then nothing is known of that file.
    var isOwnShortage: Bool { code == .descriptorLimit || systemError?.isMemoryShortage == true }
}
