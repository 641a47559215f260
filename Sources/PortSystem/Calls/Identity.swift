// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
package import PortCLibrary

// The kernel shows a user without a number in this user namespace as the overflow id (65534 unless configured
// otherwise): all such users appear the same, and like `nobody`. So that number identifies one user only where the
// namespace has a number for every user, as the first namespace of a machine has.

/// Whether a number identifies one user: it is not the overflow id, or no user without a number can be behind it.
package func sysStandsForOneUser(_ user: uid_t) -> Bool {
    Overflow.standsForOne(user, overflow: Overflow.user) { sysReadText("/proc/self/uid_map") }
}

/// Whether a number identifies one group, in the same way.
package func sysStandsForOneGroup(_ group: gid_t) -> Bool {
    Overflow.standsForOne(group, overflow: Overflow.group) { sysReadText("/proc/self/gid_map") }
}

/// Whether a number that the kernel shows for a peer or a file is this process's effective user.
package func sysIsOwnUser(_ user: uid_t) -> Bool { user == sysUserID() && sysStandsForOneUser(user) }

/// Whether this user namespace gives each user a number, as the machine's first one does: then numbers that are stored
/// in a file mean the same users to all processes.
package func sysNumbersEachUser() -> Bool { sysReadText("/proc/self/uid_map").map(Overflow.isWhole) ?? false }

/// The overflow ids of this system.
enum Overflow {
    static let user = number("/proc/sys/kernel/overflowuid")
    static let group = number("/proc/sys/kernel/overflowgid")

    /// Decides by the map of the user namespace (user_namespaces(7)), which is nil when it cannot be read.
    static func standsForOne(_ id: UInt32, overflow: UInt32, map: () -> String?) -> Bool {
        if id != overflow { return id != .max }
        return map().map(isWhole) ?? false
    }

    /// Whether a map gives each id a number: all but the last, which is no id.
    static func isWhole(_ map: String) -> Bool {
        let counts = map.split(separator: "\n").map { line in
            line.split(separator: " ").last.flatMap { UInt64($0) } ?? 0
        }
        return counts.reduce(0, +) >= UInt64(UInt32.max)
    }

    private static func number(_ path: String) -> UInt32 {
        sysReadText(path).flatMap { UInt32($0.prefix { $0.isNumber }) } ?? 65534
    }
}

package func sysProcessID() -> pid_t { getpid() }

/// The effective user of this process: the owner of files that it makes, and the user that its peers see.
package func sysUserID() -> uid_t { geteuid() }

/// The effective group of this process.
package func sysGroupID() -> gid_t { getegid() }

/// The kernel's id of the calling thread; the main thread's equals the process's id.
package func sysThreadID() -> pid_t { shim_thread_id() }

/// The C library's number of the calling thread: no other live thread has it. No system call.
package func sysThisThread() -> UInt { shim_this_thread() }

/// A variable of the environment; nil when it is not set or empty, and in a program with more privileges than the user
/// that started it, such as a set-user-ID program: that user controls the environment.
package func sysEnvironment(_ name: String) -> String? {
    guard let value = unsafe shim_variable(name), unsafe value.pointee != 0 else { return nil }
    return unsafe String(cString: value)
}

/// The bootstrap socket that was this program's standard input, which it no longer is; nil when that was none.
///
/// - Throws: why it could not be moved when the program started: it still is the standard input.
package func sysBootstrapInput() throws(SystemError) -> CInt? {
    let moved = shim_bootstrap_input()
    if moved < 0 { throw SystemError(-moved) }
    return moved == 0 ? nil : moved
}
