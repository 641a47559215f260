// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import MessagePort
import PortSystem

/// What one look at a name's file tells, when the name is held.
struct NameEntry: Sendable {
    let registration: PortNameServer.Registration
    let socketPath: String

    init(_ registration: PortNameServer.Registration, socketPath: String) {
        self.registration = registration
        self.socketPath = socketPath
    }

    /// Looks at a file.
    ///
    /// - Returns: nil when nobody holds the name, its record is not written yet, or it is no file of ours: those can be
    ///   read.
    static func look(at file: String, in names: TrustedDirectory) throws(PortError) -> NameEntry? {
        guard let name = PortName(fileName: file) else { return nil }
        do throws(PortError) {
            guard try LockedFile.isLocked(file, in: names), let contents = try LockedFile.contents(file, in: names),
                let record = NameRecord(contents: contents)
            else { return nil }
            return NameEntry(PortNameServer.Registration(name, record), socketPath: record.socketPath)
        } catch {
            if error.code == .directoryUntrusted || error.systemError?.code == EACCES { return nil }
            throw error
        }
    }

    /// Looks at all files of the directory that may be names; none when it was removed. The keys are ASCII, so that each is
    /// equal to itself alone.
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

    /// Whether two looks saw the same port under the same name.
    func isSame(as other: NameEntry) -> Bool {
        registration.owner == other.registration.owner && registration.since == other.registration.since
            && socketPath.utf8.elementsEqual(other.socketPath.utf8)
    }
}
