// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import CPortShims
import PortCLibrary

/// Calls a function before a signal ends the process: SIGINT, SIGTERM, SIGHUP, SIGQUIT, or a fault, as far as the
/// program leaves them to the kernel. The signal still ends the process afterwards. SIGKILL cannot be handled.
///
/// - Parameter body: called on a thread of its own. After a fault of another thread it has ten seconds: that thread may
///   hold any lock.
/// - Throws: `EMFILE`, `ENFILE`, `EAGAIN` when there is no descriptor or thread for it.
package func sysBeforeEndingSignal(_ body: @escaping @Sendable () -> Void) throws(SystemError) {
    var ends: [CInt] = [-1, -1, -1, -1]
    do throws(SystemError) {
        try start(&ends, body)
    } catch {
        for end in ends where end >= 0 { _ = FileDescriptor(owning: end) }
        throw error
    }
}

private func start(_ ends: inout [CInt], _ body: @escaping @Sendable () -> Void) throws(SystemError) {
    for first in [0, 2] {
        _ = try retrying(.pipe) {
            unsafe ends.withUnsafeMutableBufferPointer { unsafe shim_pipe($0.baseAddress.map { unsafe $0 + first }) }
        }
    }
    let numbers = ends
    // shim_pipe makes them non-blocking, as a signal handler needs; the thread waits with poll.
    _ = try sysStartThread(blocksSignals: true) {
        sysNameThread("last words")
        while (try? sysPoll(numbers[0], .readable, until: .distantFuture)) != nil {
            guard let byte = ((try? sysRead(numbers[0], capacity: 1)) ?? nil)?.first else { continue }
            body()
            shim_end_by_signal(CInt(byte))
        }
    }
    unsafe shim_report_ending_signals(numbers)
}
