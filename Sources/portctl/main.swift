// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// portctl: inspects named ports and sends messages to them. `portctl help` describes it.

import PortCLibrary
import NamedPortServer

var invocation: Invocation?
do {
    let read = try Invocation(Array(CommandLine.arguments.dropFirst()))
    invocation = read
    exit(try read.run())
} catch let error as UsageError {
    Console.leave(.usage, error.line)
} catch {
    Console.leave(ExitStatus(error), "\(error)\(invocation?.suggestion(after: error) ?? "")")
}
