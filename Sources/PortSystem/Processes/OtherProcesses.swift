// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
package import PortCLibrary

/// A descriptor that refers to a process: readable once it has ended and all its files are closed. Close-on-exec.
///
/// - Returns: the descriptor; nil when there is no such process here (it may be in another PID namespace).
/// - Throws: EMFILE, ENFILE; ENOSYS, EPERM and the other errors that `Refusals.processDescriptor` remembers.
package func sysProcessDescriptor(of process: pid_t) throws(SystemError) -> FileDescriptor? {
    do throws(SystemError) {
        return try sysOpenProcess(process)
    } catch {
        if Refusals.processDescriptor.error != nil { throw error }
        // EINVAL and ENOENT: the number of a thread that is no process; which of the two depends on the kernel.
        if error.code == ESRCH || error.code == EINVAL || error.code == ENOENT { return nil }
        throw error
    }
}

/// Whether a process has ended, or there is none of that number here; false also when that is unknown.
package func sysHasEnded(_ process: pid_t) -> Bool {
    do throws(SystemError) {
        guard let descriptor = try sysProcessDescriptor(of: process) else { return true }
        return try !sysPoll(descriptor.raw, .readable, until: .distantPast).isEmpty
    } catch {
        return Refusals.processDescriptor.error != nil && sysHasEndedByNumber(process)
    }
}

/// The same without a process descriptor. A process that has ended and was not reaped still has its number.
private func sysHasEndedByNumber(_ process: pid_t) -> Bool {
    do throws(SystemError) {
        try sysKill(process, 0)
    } catch {
        if error.code == ESRCH { return true }
    }
    guard let state = statistics(of: process)?.first else { return false }
    return state.elementsEqual("Z".utf8) || state.elementsEqual("X".utf8)
}

/// The fields of `/proc/<process>/stat` after the program's name.
private func statistics(of process: pid_t) -> [ArraySlice<UInt8>]? {
    guard let file = try? sysOpen("/proc/\(process)/stat", .reading), let bytes = try? sysReadAll(file.raw),
        // The second field is the program's name in parentheses, which may contain any byte.
        let end = bytes.lastIndex(of: UInt8(ascii: ")"))
    else { return nil }
    return bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
}

/// When a process started: the time since the machine's boot, in whole ticks of the kernel's clock; nil when there is
/// no such process, or this user has no access to it.
package func sysProcessStart(_ process: pid_t) -> Duration? {
    guard let fields = statistics(of: process) else { return nil }
    let rate = Int64(sysconf(CInt(_SC_CLK_TCK)))
    guard fields.count > 19, rate > 0, let ticks = Int64(String(decoding: fields[19], as: UTF8.self)) else {
        return nil
    }
    return .nanoseconds(ticks / rate * 1_000_000_000 + ticks % rate * 1_000_000_000 / rate)
}
