// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// A thread that was started here: it is joined once, or detached when this value is destroyed.
package struct SystemThread: ~Copyable, Sendable {
    private let thread: UInt

    fileprivate init(_ thread: UInt) {
        self.thread = thread
    }

    deinit {
        let result = shim_detach_thread(thread)
        if result != 0 {
            fatalError("A thread cannot be detached (pthread_detach gave \(result)). Was it detached by someone else?")
        }
    }

    /// Blocks until the thread is gone, including its thread-local values. Traps on the thread itself.
    package consuming func join() {
        let thread = thread
        discard self
        let result = shim_join_thread(thread)
        if result != 0 { fatalError("A thread cannot be joined (pthread_join gave \(result)). Does it join itself?") }
    }
}

/// Starts a thread.
///
/// - Parameters:
///   - stackSize: the size of its stack in bytes; nil for the system's default, mostly 8 MiB.
///   - blocksSignals: whether the thread leaves the signals that are sent to the process to other threads. Those that
///     its own instructions raise (SIGSEGV and the like) are still delivered. Otherwise it inherits its starter's mask.
///   - body: what it does. The thread ends when it returns.
/// - Returns: the thread.
/// - Throws: `EAGAIN` when the system cannot make a thread, `EINVAL` when it rejects a stack of that size.
package func sysStartThread(
    stackSize: Int? = nil, blocksSignals: Bool = false, _ body: @escaping @Sendable () -> Void
) throws(SystemError) -> SystemThread {
    let size = stackSize.map { max(1, $0) } ?? 0
    let start = unsafe Unmanaged.passRetained(Shared(body))
    do throws(SystemError) {
        return try withSignalsBlocked(blocksSignals) { () throws(SystemError) in
            var thread: UInt = 0
            _ = try retrying(.clone) {
                // The function returns the error number instead of setting errno.
                errno = unsafe shim_start_thread(&thread, size, runThread, start.toOpaque())
                return errno == 0 ? 0 : CInt(-1)
            }
            return SystemThread(thread)
        }
    } catch {
        unsafe start.release()
        throw error
    }
}

/// Gives the calling thread a name, which `ps`, `top`, debuggers and `/proc` show.
///
/// - Parameter name: the name. The kernel stores 15 bytes: a longer name is cut between characters. NULs are left out.
package func sysNameThread(_ name: String) {
    // A thread runs without a name where the system refuses it.
    _ = unsafe kernelThreadName(name).withCString { unsafe shim_name_thread($0) }
}

/// The part of a thread's name that the kernel stores.
///
/// - Parameter name: any text.
/// - Returns: its beginning, at most 15 bytes, cut between characters; without NULs.
package func kernelThreadName(_ name: String) -> String {
    var shortened = ""
    for character in name where character != "\0" {
        if shortened.utf8.count + character.utf8.count > 15 { break }
        shortened.append(character)
    }
    return shortened
}

private func runThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument = unsafe argument else { return nil }
    // SAFETY: sysStartThread passes only a body that it retained.
    let start = unsafe Unmanaged<Shared<@Sendable () -> Void>>.fromOpaque(argument).takeRetainedValue()
    start.value()
    return nil
}
