// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors
//
// portctl: looks at named ports and talks to them. `portctl help` tells how.

import Glibc
import NamedPortServer

/// Writes one sentence to standard error and ends the program.
func leave(_ status: CInt, _ sentence: String) -> Never {
    try? sysWriteAll(STDERR_FILENO, Array("portctl: \(sentence.shown)\n".utf8))
    exit(status)
}

do {
    try Invocation(Array(CommandLine.arguments.dropFirst())).run()
} catch let error as UsageError {
    leave(2, "\(error.sentence) Try: portctl help")
} catch {
    leave(1, "\(error)")
}
