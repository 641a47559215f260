// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// An open directory that is this user's alone. What is verified is the open directory, not its path, so nobody can put
// another in its place between the look and the use; everything in it is then reached through its descriptor.
// The directories above it are not verified: they must not let others rename or remove what belongs to this user
// (a sticky /tmp does not).

import PortCLibrary
import PortSystem

/// A directory that belongs to this process's user, is closed to all others, and is open here.
package final class TrustedDirectory: Sendable {
    /// The absolute path by which it was opened.
    package let path: String  // immutable
    private let descriptor: FileDescriptor  // immutable
    private let status: FileStatus  // immutable

    /// The descriptor's number, valid as long as this object lives: keep the object in a variable while you use it.
    package var raw: CInt { descriptor.raw }

    private init(path: String, _ descriptor: consuming FileDescriptor, _ status: FileStatus) {
        self.path = path
        self.descriptor = descriptor
        self.status = status
    }

    /// Opens a directory, and makes it with mode 0700 when it is not there. Its parent is not made.
    ///
    /// - Parameters:
    ///   - path: an absolute path; slashes at its end, double ones, and components that are `.` do not count.
    ///   - makes: whether it is made; otherwise one that is not there is `systemCallFailed` with ENOENT.
    /// - Returns: the open, verified directory.
    /// - Throws: `directoryUntrusted` when it is a symbolic link, is no directory, belongs to another user or is open
    ///   to others, or when the path is not absolute, has a component `..`, or holds a NUL; `descriptorLimit`;
    ///   `systemCallFailed` for the rest.
    package static func open(path: String, makes: Bool = true) throws(PortError) -> TrustedDirectory {
        guard path.utf8.first == UInt8(ascii: "/") else {
            throw PortError(.directoryUntrusted, subject: .path(path, .notAbsolute))
        }
        // The kernel would read the path up to there, and use or make another directory.
        guard !path.utf8.contains(0) else { throw PortError(.directoryUntrusted, subject: .path(path, .hasNUL)) }
        let components = path.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
        // The addresses of ports begin with it, and a port has one address.
        guard !components.contains("..") else { throw PortError(.directoryUntrusted, subject: .path(path, .leadsUp)) }
        // A slash at the end would also make the kernel follow a symbolic link.
        let plain = "/" + components.filter { $0 != "." }.joined(separator: "/")
        return try open(plain, in: AT_FDCWD, path: plain, makes: makes)
    }

    /// Opens a directory in this one, and makes it when it is not there.
    ///
    /// - Parameters:
    ///   - name: a file name.
    ///   - makes: whether it is made.
    /// - Returns: the open, verified directory.
    /// - Throws: as ``open(path:makes:)`` does.
    package func subdirectory(_ name: String, makes: Bool = true) throws(PortError) -> TrustedDirectory {
        try Self.open(name, in: raw, path: path + "/" + name, makes: makes)
    }

    /// Whether the path still leads to this directory, and it is still closed to others.
    package var isCurrent: Bool {
        guard let now = try? sysStatus(path, in: AT_FDCWD) else { return false }
        return now.isSameFile(as: status) && now.directoryRefusal == nil
    }

    private static func open(_ name: String, in parent: CInt, path: String, makes: Bool) throws(PortError)
        -> TrustedDirectory
    {
        let status: FileStatus?
        do throws(SystemError) {
            let descriptor = try openOrMake(name, in: parent, path: makes ? path : nil)
            let opened = try sysStatus(descriptor.raw)
            if opened.directoryRefusal == nil { return TrustedDirectory(path: path, descriptor, opened) }
            status = opened
        } catch {
            // The kernel refuses to open a link, a file, or another user's directory: tell which it is.
            status = (try? sysStatus(name, in: parent)) ?? nil
            guard status?.directoryRefusal != nil else { throw PortError(error, subject: .path(path)) }
        }
        throw PortError(.directoryUntrusted, subject: .path(path, status?.directoryRefusal))
    }

    private static func openOrMake(_ name: String, in parent: CInt, path: String?) throws(SystemError) -> FileDescriptor
    {
        do throws(SystemError) {
            return try sysOpen(name, in: parent, .directory)
        } catch {
            guard error.code == ENOENT, let path else { throw error }
            // Another process may make it at this moment; then its directory is as good, and is verified like ours.
            _ = try sysMakeDirectory(path)
            return try sysOpen(name, in: parent, .directory)
        }
    }
}
