// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import Glibc
import NamedPortServer
import PortSystem
import RunLoopCore

/// Writes a line to standard output, at once.
func say(_ line: String) {
    do throws(SystemError) {
        try sysWriteAll(STDOUT_FILENO, Array((line + "\n").utf8))
    } catch {
        giveUp("cannot write: \(error)")
    }
}

/// Ends the process because the test asked for what it cannot do.
func giveUp(_ text: String) -> Never {
    _ = try? sysWriteAll(STDERR_FILENO, Array("port-test-peer: \(text)\n".utf8))
    exit(2)
}

/// Becomes another user for good.
func become(_ user: UInt32) {
    guard setgroups(0, nil) == 0, setgid(user) == 0, setuid(user) == 0 else {
        giveUp("cannot become user \(user)")
    }
}

/// A source that calls `didEnd` when the standard input ends; what comes before that is dropped.
func inputEndSource(_ didEnd: @escaping @Sendable () -> Void) -> RunLoopSource {
    RunLoopSource(descriptor: STDIN_FILENO) {
        if let bytes = try? sysRead(STDIN_FILENO, capacity: 4096), !bytes.isEmpty { return }
        didEnd()
    }
}

/// Runs the current loop until the standard input ends.
func runUntilInputEnds() {
    let loop = ThreadRunLoop.current
    loop.add(inputEndSource { loop.stop() })
    loop.run()
}
