// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
package import PortCLibrary

/// This process's id.
package func sysProcessID() -> pid_t { getpid() }

/// The effective user of this process: the owner of files that it makes, and the user that its peers see.
package func sysUserID() -> uid_t { geteuid() }

/// The effective group of this process.
package func sysGroupID() -> gid_t { getegid() }

/// The kernel's id of the calling thread; the main thread's equals the process's id.
package func sysThreadID() -> pid_t { shim_thread_id() }

/// The C library's number of the calling thread: no other live thread has it. No system call.
package func sysThisThread() -> UInt { shim_this_thread() }

/// How many times this process and its ancestors have forked: a different number than before means that this is a
/// child. No system call. A child made by clone(2) without the C library's fork is not noticed.
package func sysForkCount() -> UInt32 { shim_fork_count() }

/// A variable of the environment; nil when it is not set or empty, and in a program with more privileges than the user
/// that started it, such as a set-user-ID program: that user controls the environment.
package func sysEnvironment(_ name: String) -> String? {
    guard let value = unsafe shim_variable(name), unsafe value.pointee != 0 else { return nil }
    return unsafe String(cString: value)
}
