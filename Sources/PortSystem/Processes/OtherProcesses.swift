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
        return try sysHasEnded(openedAs: descriptor.raw)
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
    guard let file = try? sysOpen("/proc/\(process)/stat", .reading), let bytes = try? sysReadAll(file.raw) else {
        return nil
    }
    return statistics(in: bytes)
}

/// The same, of a file that was read.
private func statistics(in bytes: [UInt8]) -> [ArraySlice<UInt8>]? {
    // The second field is the program's name in parentheses, which may contain any byte.
    guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
    return bytes[(end + 1)...].split(separator: UInt8(ascii: " "))
}

/// When a process started: the time since the machine's boot, in whole ticks of the kernel's clock; nil when there is
/// no such process, or this user has no access to it.
package func sysProcessStart(_ process: pid_t) -> Duration? { statistics(of: process).flatMap(start) }

private func start(in fields: [ArraySlice<UInt8>]) -> Duration? {
    let rate = Int64(sysconf(CInt(_SC_CLK_TCK)))
    guard fields.count > 19, rate > 0, let ticks = Int64(String(decoding: fields[19], as: UTF8.self)) else {
        return nil
    }
    return .nanoseconds(ticks / rate * 1_000_000_000 + ticks % rate * 1_000_000_000 / rate)
}

// MARK: - By a process descriptor

/// As above, of the process that a process descriptor refers to. If the process has not ended afterwards, the answer is
/// about it, and not about another one that got its number.
///
/// - Returns: nil also where `/proc` is not mounted, hides the process, or is of a PID namespace in which the process
///   has no number.
/// - Throws: EMFILE, ENFILE, ENOMEM.
package func sysProcessStart(openedAs process: CInt) throws(SystemError) -> Duration? {
    // The number is the one in the PID namespace of this /proc, which need not be this process's.
    let key = "Pid:"
    guard let facts = try contents("/proc/self/fdinfo/\(process)"),
        let line = String(decoding: facts, as: UTF8.self).split(separator: "\n").first(where: { $0.hasPrefix(key) }),
        let number = pid_t(line.dropFirst(key.count).drop { $0 == "\t" || $0 == " " }), number > 0,
        let bytes = try contents("/proc/\(number)/stat")
    else { return nil }
    return statistics(in: bytes).flatMap(start)
}

/// The bytes of a file of /proc; nil when it cannot be read.
///
/// - Throws: EMFILE, ENFILE, ENOMEM: it might be read later.
private func contents(_ path: String) throws(SystemError) -> [UInt8]? {
    do throws(SystemError) {
        let file = try sysOpen(path, .reading)
        return try sysReadAll(file.raw)
    } catch {
        if error.isDescriptorLimit || error.isMemoryShortage { throw error }
        return nil
    }
}

/// Whether the process that a process descriptor refers to has ended: reaped or not.
package func sysHasEnded(openedAs process: CInt) throws(SystemError) -> Bool {
    try !sysPoll(process, .readable, until: .distantPast).isEmpty
}

/// How the process that a process descriptor refers to has ended: of a child that was not reaped yet; since Linux 6.15
/// also of each process that was. Reaps nothing.
///
/// - Returns: nil while it runs; `unknown` when the system does not say.
package func sysEnd(openedAs process: CInt) throws(SystemError) -> ChildEnd? {
    guard try sysHasEnded(openedAs: process) else { return nil }
    let end = try? Refusals.processWait.remember { () throws(SystemError) in
        try sysWaitForChild(process, 0, leavesUnreaped: true, blocks: false)
    }
    if let known = end ?? nil { return known }
    var status: CInt = 0
    // An error is no refusal to remember: it may be that of a process that is to be reaped yet.
    guard unsafe shim_process_end(process, &status) == 0 else { return .unknown }
    return status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signalled(status & 0x7f)
}

/// Sends a signal to the process that a process descriptor refers to; zero only checks whether that is allowed.
///
/// - Throws: ESRCH when the process was reaped; EPERM; EINVAL for a signal that does not exist, and for a process in
///   another PID namespace than this one's and those inside it; ENOSYS before Linux 5.1.
package func sysSignal(openedAs process: CInt, _ signal: CInt) throws(SystemError) {
    _ = try retrying(.pidfd_send_signal) { shim_pidfd_send_signal(process, signal) }
}
