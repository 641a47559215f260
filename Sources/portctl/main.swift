// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// portctl: looks at named ports and talks to them. `portctl help` tells how.

import Glibc
import NamedPortServer

do {
    let invocation = try Invocation(Array(CommandLine.arguments.dropFirst()))
    exit(try invocation.run())
} catch let error as UsageError {
    Console.leave(.usage, error.line)
} catch {
    Console.leave(ExitStatus(error), "\(error)")
}
