// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import PortCLibrary
import PortSystem

extension LockedFile {
    /// Whether somebody holds a file's lock; false when there is no such file. Disturbs nobody.
    ///
    /// - Throws: as ``take(_:in:)`` does.
    package static func isLocked(_ name: String, in directory: TrustedDirectory) throws(PortError) -> Bool {
        guard let file = try openExisting(name, in: directory) else { return false }
        return try isLocked(file, name, in: directory)
    }

    static func isLocked(_ file: borrowing FileDescriptor, _ name: String, in directory: TrustedDirectory)
        throws(PortError) -> Bool
    {
        do throws(SystemError) {
            return try sysIsLocked(file.raw)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name))
        }
    }

    /// What a file says, at most `readLimit` bytes; nil when there is no such file. It may be a part of what its owner
    /// writes.
    ///
    /// - Throws: as ``take(_:in:)`` does.
    package static func contents(_ name: String, in directory: TrustedDirectory) throws(PortError) -> [UInt8]? {
        guard let file = try openExisting(name, in: directory) else { return nil }
        do throws(SystemError) {
            return try read(file)
        } catch {
            throw PortError(error, subject: .path(directory.path + "/" + name))
        }
    }

    private static func openExisting(_ name: String, in directory: TrustedDirectory) throws(PortError)
        -> FileDescriptor?
    {
        do throws(PortError) {
            return try open(name, in: directory, .reading)
        } catch {
            if error.systemError?.code == ENOENT { return nil }
            throw error
        }
    }

    /// Opens a file and verifies what was opened.
    static func open(_ name: String, in directory: TrustedDirectory, _ mode: OpenMode) throws(PortError)
        -> FileDescriptor
    {
        let path = directory.path + "/" + name
        let status: FileStatus?
        do throws(SystemError) {
            let file = try sysOpen(name, in: directory.raw, mode)
            let opened = try sysStatus(file.raw)
            if opened.fileRefusal == nil { return file }
            status = opened
        } catch {
            // The kernel refuses to open a link, a directory, a socket, or another user's file: tell which it is.
            status = (try? sysStatus(name, in: directory.raw)) ?? nil
            guard status?.fileRefusal != nil else { throw PortError(error, subject: .path(path)) }
        }
        throw PortError(.directoryUntrusted, subject: .path(path, status?.fileRefusal))
    }

    static func read(_ file: borrowing FileDescriptor) throws(SystemError) -> [UInt8] {
        var contents: [UInt8] = []
        while contents.count < readLimit {
            let wanted = min(4096, readLimit - contents.count)
            guard let piece = try sysRead(file.raw, capacity: wanted), !piece.isEmpty else { break }
            contents += piece
        }
        return contents
    }

    static func isCurrent(_ file: borrowing FileDescriptor, _ name: String, in directory: TrustedDirectory)
        throws(SystemError) -> Bool
    {
        guard let there = try sysStatus(name, in: directory.raw) else { return false }
        return there.isSameFile(as: try sysStatus(file.raw))
    }
}
