// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer

/// The end of the pipe into which the signal handler writes.
nonisolated(unsafe) private var interruptBell: CInt = -1

/// SIGINT, SIGTERM and SIGHUP as something to wait for.
struct Interrupt {
    /// Readable once one of them has come.
    let descriptor: CInt

    /// From now on these signals do not end the program. To be called once.
    init() throws(SystemError) {
        var ends: [CInt] = [-1, -1]
        if pipe(&ends) != 0 { throw SystemError(errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)  // a handler must not wait
        (descriptor, interruptBell) = (ends[0], ends[1])
        for number in [SIGINT, SIGTERM, SIGHUP] {
            signal(number) { _ in
                var byte: UInt8 = 1
                _ = Glibc.write(interruptBell, &byte, 1)
            }
        }
    }

    /// Waits for one of the signals.
    ///
    /// - Returns: false when the moment came first.
    func wait(until moment: MonotonicInstant) throws(SystemError) -> Bool {
        try !sysPoll(descriptor, .readable, until: moment).isEmpty
    }
}
