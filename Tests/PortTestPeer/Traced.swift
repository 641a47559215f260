// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

import NamedPortServer

/// Lets itself be traced, and has a timer fire again and again, until its input ends.
func traced(_ directory: String) throws(PortError) {
    let service = try TraceService.start(nameServer: nameServer(in: directory))
    let timer = RunLoopTimer(name: "heartbeat", after: .zero, interval: .milliseconds(1)) { _ in }
    ThreadRunLoop.main.add(timer)
    say("traced")
    runUntilInputEnds()
    timer.invalidate()
    withExtendedLifetime(service) {}
}

/// Lets itself be traced, and traps in a handler.
func tracedFault(_ directory: String) throws(PortError) {
    let service = try TraceService.start(nameServer: nameServer(in: directory))
    let timer = RunLoopTimer(name: "fault", after: .zero) { _ in fatalError("as it should") }
    ThreadRunLoop.main.add(timer)
    runUntilInputEnds()
    withExtendedLifetime(service) {}
}
