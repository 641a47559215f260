// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// The kind of a file's lock. The two kinds do not see each other, so all processes that lock a file must use the same.
package enum FileLock: String, Sendable, CaseIterable {
    /// An open-file-description lock (`fcntl(2)`), which can be tested without being acquired.
    case openFile = "open-file-description"
    /// A lock of the whole file (`flock(2)`), for systems that refuse the other kind. Testing it acquires a shared lock
    /// for a moment.
    case wholeFile = "flock"

    /// How long to try for a lock that others share because they test it.
    package static let limit = Duration.seconds(1)
}

/// Whether the system has open-file-description locks.
///
/// - Parameter descriptor: any open file; nothing of it changes.
/// - Returns: whether it has.
/// - Throws: an error that is no refusal.
package func sysHasOpenFileLocks(_ descriptor: CInt) throws(SystemError) -> Bool {
    do throws(SystemError) {
        _ = try openFileLock { shim_unlock(descriptor) }
        return true
    } catch {
        if Refusals.openFileLocks.error != nil { return false }
        throw error
    }
}

/// Acquires the exclusive lock of an open file; the kernel drops it when the last descriptor of that open file is
/// closed, however its process ends.
///
/// - Parameters:
///   - descriptor: the open file.
///   - kind: which kind of lock.
///   - limit: how long to try while others share a lock of the whole file; zero tries once.
/// - Returns: false when another open file of the same inode holds it.
/// - Throws: the kernel's error.
package func sysLock(
    _ descriptor: CInt, _ kind: FileLock, within limit: Duration = FileLock.limit
) throws(SystemError) -> Bool {
    switch kind {
    case .openFile:
        return try unlessHeld { () throws(SystemError) in try openFileLock { shim_lock_exclusive(descriptor) } }
    case .wholeFile:
        if try tryLockWhole(descriptor, LOCK_EX) { return true }
        let deadline = MonotonicInstant.after(limit)
        while .now < deadline {
            // Is it held, or do others only test it?
            if try sysIsLocked(descriptor, kind) { return false }
            sysSleep(Tuning.timeBetweenLockAttempts)
            if try tryLockWhole(descriptor, LOCK_EX) { return true }
        }
        return false
    }
}

/// Drops the lock of an open file, for every descriptor of that open file: also for a copy that a child process holds
/// between its fork and its exec.
package func sysUnlock(_ descriptor: CInt, _ kind: FileLock) throws(SystemError) {
    switch kind {
    case .openFile: _ = try openFileLock { shim_unlock(descriptor) }
    case .wholeFile: _ = try retrying(.flock) { flock(descriptor, LOCK_UN) }
    }
}

/// Whether another open file of the same inode holds the exclusive lock. Testing an open-file-description lock affects
/// no other process; testing a lock of the whole file shares it for a moment.
package func sysIsLocked(_ descriptor: CInt, _ kind: FileLock) throws(SystemError) -> Bool {
    switch kind {
    case .openFile:
        var held: CInt = 0
        _ = try openFileLock { unsafe shim_lock_is_held(descriptor, &held) }
        return held != 0
    case .wholeFile:
        guard try tryLockWhole(descriptor, LOCK_SH) else { return true }
        try sysUnlock(descriptor, kind)
        return false
    }
}

/// Makes a call for an open-file-description lock, unless the system has refused those. An error for one file may be
/// that file system's alone: so a second file is tried before the refusal is remembered.
private func openFileLock(_ body: () -> CInt) throws(SystemError) -> CInt {
    try Refusals.openFileLocks.remember({ $0.isRefusal && isRefused(tryOpenFileLock) }) {
        () throws(SystemError) in
        try retrying(.fcntl, body)
    }
}

/// Tests for an open-file-description lock of a file that every user may open.
func tryOpenFileLock() throws(SystemError) {
    let directory = try sysOpen("/", .directory)
    var held: CInt = 0
    _ = try retrying(.fcntl) { unsafe shim_lock_is_held(directory.raw, &held) }
}

private func tryLockWhole(_ descriptor: CInt, _ kind: CInt) throws(SystemError) -> Bool {
    try unlessHeld { () throws(SystemError) in try retrying(.flock) { flock(descriptor, kind | LOCK_NB) } }
}

private func unlessHeld(_ body: () throws(SystemError) -> CInt) throws(SystemError) -> Bool {
    do throws(SystemError) {
        _ = try body()
        return true
    } catch {
        if error.code == EAGAIN || error.code == EACCES { return false }
        throw error
    }
}
