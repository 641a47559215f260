// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
package import PortCLibrary

/// The facts about a file that the package uses.
package struct FileStatus: Hashable, Sendable {
    package let device: dev_t
    package let inode: ino_t
    package let mode: mode_t
    package let owner: uid_t
    package let group: gid_t

    fileprivate init(_ status: stat) {
        device = status.st_dev
        inode = status.st_ino
        mode = status.st_mode
        owner = status.st_uid
        group = status.st_gid
    }

    package var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
    package var isSocket: Bool { mode & S_IFMT == S_IFSOCK }
    package var isRegular: Bool { mode & S_IFMT == S_IFREG }
    /// Its permission bits, including the set-group and the sticky bit.
    package var permissions: mode_t { mode & 0o7777 }
    /// Whether users other than the owner may read, write or search it.
    package var isOpenToOthers: Bool { mode & 0o077 != 0 }
    package func isSameFile(as other: FileStatus) -> Bool { device == other.device && inode == other.inode }
}

/// Whether a descriptor is of a file. Asks no file system, which may be a peer's and never answer.
package func sysIsOpen(_ descriptor: CInt, on file: FileStatus) throws(SystemError) -> Bool {
    try retrying(.statx) { shim_statx_is(descriptor, UInt64(file.device), UInt64(file.inode)) } == 1
}

package enum OpenMode: Sendable {
    /// A directory, not through a symbolic link.
    case directory
    /// A file to read, not through a symbolic link.
    case reading
    /// A file to read and write, made with mode 0600 when it is not there, not through a symbolic link.
    case creating
    /// Whatever has the name, also a symbolic link, as a mere reference (O_PATH): opening it has no effect and never
    /// waits.
    case location

    var flags: CInt {
        switch self {
        case .directory: O_RDONLY | O_DIRECTORY | O_NOFOLLOW
        case .reading: O_RDONLY | O_NOFOLLOW | O_NONBLOCK
        case .creating: O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK
        case .location: SHIM_O_PATH | O_NOFOLLOW
        }
    }
}

/// Opens a file, close-on-exec.
///
/// - Parameters:
///   - path: the path; relative to `directory`, or to the working directory.
///   - directory: an open directory.
///   - mode: how to open it.
/// - Returns: the open file.
/// - Throws: except with `location`, ELOOP when the last part is a symbolic link (ENOTDIR for a directory); ENOENT when it
///   is not there.
package func sysOpen(_ path: String, in directory: CInt = AT_FDCWD, _ mode: OpenMode) throws(SystemError)
    -> FileDescriptor
{
    FileDescriptor(owning: try retrying(.open) { unsafe shim_openat(directory, path, mode.flags, 0o600) })
}

/// The text of a file; nil when it cannot be read.
package func sysReadText(_ path: String) -> String? {
    guard let file = try? sysOpen(path, .reading), let bytes = try? sysReadAll(file.raw) else { return nil }
    return String(decoding: bytes, as: UTF8.self)
}

/// Makes a directory that only its owner may use.
///
/// - Returns: false when there is something of that name already.
package func sysMakeDirectory(_ path: String) throws(SystemError) -> Bool {
    try unless(EEXIST) { () throws(SystemError) in try retrying(.mkdir) { unsafe mkdir(path, 0o700) } } != nil
}

/// Changes the group of an open file.
///
/// - Throws: EPERM when this process is not in the group.
package func sysChangeGroup(_ descriptor: CInt, to group: gid_t) throws(SystemError) {
    _ = try retrying(.fchown) { shim_change_group(descriptor, group) }
}

/// Lets a group use an open file or directory.
///
/// - Parameters:
///   - descriptor: the open file, which is this user's.
///   - group: the group.
///   - permissions: the permissions of the group and the owner.
/// - Throws: EPERM when this process is not in the group.
package func sysShare(_ descriptor: CInt, with group: gid_t, _ permissions: mode_t) throws(SystemError) {
    let status = try sysStatus(descriptor)
    if status.group == group && status.permissions == permissions { return }
    // In this order: a change of the group may clear the set-group bit. A group without a number in this user namespace
    // cannot be named; a set-group directory has already passed it on.
    if status.group != group { try sysChangeGroup(descriptor, to: group) }
    _ = try retrying(.fchmod) { fchmod(descriptor, permissions) }
}

/// Lets a group connect to a socket that this process has just made in a directory.
///
/// - Throws: EPERM when this process is not in the group; ESTALE when something else is there.
package func sysShareSocket(_ name: String, in directory: CInt, with group: gid_t) throws(SystemError) {
    // The name may refer to something else by now: change only the file that was checked.
    let location = try sysOpen(name, in: directory, .location)
    let status = try sysStatus(location.raw)
    guard status.isSocket, status.owner == sysUserID() else { throw SystemError(ESTALE) }
    if status.group == group && status.permissions == 0o660 { return }
    if status.group != group { try sysChangeGroup(location.raw, to: group) }
    do throws(SystemError) {
        _ = try retrying(.fchmod) { unsafe chmod("/proc/self/fd/\(location.raw)", 0o660) }
    } catch {
        // Without /proc, by its name. Only the processes that may write to the directory can replace the file, and they
        // are trusted with it.
        guard error.code == ENOENT else { throw error }
        _ = try retrying(.fchmod) { unsafe fchmodat(directory, name, 0o660, 0) }
    }
}

package func sysStatus(_ descriptor: CInt) throws(SystemError) -> FileStatus {
    var status = stat()
    _ = try retrying(.fstat) { unsafe fstat(descriptor, &status) }
    return FileStatus(status)
}

/// The status of a name in a directory, symbolic links not followed; nil when there is no such name.
package func sysStatus(_ name: String, in directory: CInt) throws(SystemError) -> FileStatus? {
    try unless(ENOENT) { () throws(SystemError) in
        var status = stat()
        _ = try retrying(.fstat) { unsafe fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
        return FileStatus(status)
    }
}

/// The target of a symbolic link, as stored; nil for a file that is no link.
///
/// - Throws: ENOENT when there is nothing at the path; ENOTDIR when a part of it but the last is no directory.
package func sysReadLink(_ path: String) throws(SystemError) -> String? {
    try unsafe readLink(limit: 4096) { unsafe readlink(path, $0, $1) }
}

/// The target of a symbolic link in a directory, as stored; nil when there is no such name, or it is no link.
package func sysReadLink(_ name: String, in directory: CInt) throws(SystemError) -> String? {
    let target = try unless(ENOENT) { () throws(SystemError) in
        try unsafe readLink(limit: 256) { unsafe readlinkat(directory, name, $0, $1) }
    }
    return target ?? nil
}

private func readLink(
    limit: Int, _ read: (UnsafeMutablePointer<CChar>, Int) -> Int
) throws(SystemError) -> String? {
    var target = [CChar](repeating: 0, count: limit)
    return try unless(EINVAL) { () throws(SystemError) in
        let count = try retrying(.readlink) { unsafe read(&target, limit) }
        return String(decoding: target.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Makes a symbolic link in a directory, atomically.
///
/// - Throws: EEXIST when there is something of that name.
package func sysMakeLink(_ name: String, to target: String, in directory: CInt) throws(SystemError) {
    _ = try retrying(.symlink) { unsafe symlinkat(target, directory, name) }
}

/// Removes a name from a directory. A name that is not there is no error.
package func sysUnlink(_ name: String, in directory: CInt) throws(SystemError) {
    _ = try unless(ENOENT) { () throws(SystemError) in
        try retrying(.unlink) { unsafe unlinkat(directory, name, 0) }
    }
}

/// Whether this process may make a file of a size. The kernel does not only refuse a larger one: it sends SIGXFSZ,
/// which ends most programs.
///
/// - Throws: EFBIG when the limit for files (RLIMIT_FSIZE) is lower.
package func sysCheckFileSize(_ size: Int) throws(SystemError) {
    if shim_file_size_limit() < size { throw SystemError(EFBIG) }
}

/// Renames a file within a directory. The new name appears atomically, and replaces nothing.
///
/// Where the kernel or the file system cannot rename in this way, the file first gets the new name as a second link.
///
/// - Throws: EEXIST when the new name exists; where a second link is needed, EPERM when the file system has no hard
///   links.
package func sysRename(_ name: String, to newName: String, in directory: CInt) throws(SystemError) {
    do throws(SystemError) {
        // A file system that does not know the flag says EINVAL, and a directory may forbid the change with EPERM.
        let isRefusal = { (error: SystemError) in
            error.code == ENOSYS || error.code != EINVAL && error.isRefusal && isRefused(tryExclusiveRename)
        }
        try Refusals.exclusiveRename.remember(isRefusal) { () throws(SystemError) in
            _ = try retrying(.rename) { unsafe shim_rename_noreplace(directory, name, newName) }
        }
    } catch {
        // Linux before 3.15; a file system that does not know the flag, such as 9p or NFS; a filter.
        guard [ENOSYS, EINVAL, EOPNOTSUPP, EPERM].contains(error.code) else { throw error }
        try sysLink(name, to: newName, in: directory)
        do throws(SystemError) {
            try sysUnlink(name, in: directory)
        } catch {
            try? sysUnlink(newName, in: directory)
            throw error
        }
    }
}

/// Renames a file that is not there, to find out whether the system refuses such a rename.
func tryExclusiveRename() throws(SystemError) {
    let directory = try sysOpen("/", .directory)
    let name = ".swift-port-probe"
    do throws(SystemError) {
        _ = try retrying(.rename) { unsafe shim_rename_noreplace(directory.raw, name, name + ".2") }
    } catch {
        // On a read-only root, or for a user without write access, the error may come before ENOENT.
        if ![ENOENT, EROFS, EACCES].contains(error.code) { throw error }
    }
}

/// Renames a file within a directory, replacing the file that has the new name.
package func sysMove(_ name: String, to newName: String, in directory: CInt) throws(SystemError) {
    _ = try retrying(.rename) { unsafe renameat(directory, name, directory, newName) }
}

/// Gives a file a second name (a hard link) in the same directory.
///
/// - Throws: EEXIST when the new name exists; EPERM when the file system has no hard links.
package func sysLink(_ name: String, to newName: String, in directory: CInt) throws(SystemError) {
    _ = try retrying(.link) { unsafe linkat(directory, name, directory, newName, 0) }
}

/// The most names that are read from a directory: reading must end even while another process keeps adding names.
package let sysListLimit = 1 << 20

/// The names in a directory, without `.` and `..`, in no particular order; `sysListLimit` at most.
package func sysList(_ path: String) throws(SystemError) -> [String] {
    try sysList(path, in: AT_FDCWD)
}

/// The names in an open directory, even if it was moved; none when it was removed.
package func sysList(in directory: CInt) throws(SystemError) -> [String] {
    try unless(ENOENT) { () throws(SystemError) in try sysList(".", in: directory) } ?? []
}

private func sysList(_ path: String, in directory: CInt) throws(SystemError) -> [String] {
    let descriptor = try sysOpen(path, in: directory, .directory).release()
    guard let stream = unsafe fdopendir(descriptor) else {
        let code = errno
        sysClose(descriptor)
        throw SystemError(code)
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while names.count < sysListLimit, let name = try unsafe nextName(in: stream) {
        if name != "." && name != ".." { names.append(name) }
    }
    return names
}

private func nextName(in stream: OpaquePointer) throws(SystemError) -> String? {
    var entry: UnsafeMutablePointer<dirent>?
    let found = try retrying(.readdir) { () -> CInt in
        errno = 0  // readdir(3): at the end it returns no entry and does not change errno
        unsafe entry = readdir(stream)
        if unsafe entry != nil { return 1 }
        return errno == 0 ? 0 : -1
    }
    guard found == 1, let entry = unsafe entry else { return nil }
    return unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
        unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
    }
}

/// Truncates or extends an open file.
package func sysTruncate(_ descriptor: CInt, to size: Int) throws(SystemError) {
    _ = try retrying(.write) { ftruncate(descriptor, size) }
}

/// Sets the position of an open file to its beginning.
package func sysRewind(_ descriptor: CInt) throws(SystemError) {
    _ = try retrying(.write) { lseek(descriptor, 0, SEEK_SET) }
}

/// The status of a path, symbolic links not followed; nil when there is nothing.
package func sysStatus(atPath path: String) throws(SystemError) -> FileStatus? {
    try sysStatus(path, in: AT_FDCWD)
}
